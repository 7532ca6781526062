// Who is let in at the client port, and how fast.
#include <leasehold/server/commands/command_table.h>
#include <leasehold/server/front/client_memory.h>
#include <leasehold/server/front/gate.h>

#include <gtest/gtest.h>

namespace leasehold::server {
namespace {

using asio::ip::make_address;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr ClientMemory::Holder kUser = ClientMemory::Holder::user;
constexpr ClientMemory::Holder kStranger = ClientMemory::Holder::stranger;

TEST(Gate, ProtectedModeTakesOnlyThisMachine) {
  const kv::Users users;
  ServerState state(ServerOptions{}, command_table());
  for (const char* here : {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_FALSE(is_protected_from(state, users, make_address(here), state.client_tls.mode()))
        << here;
  }
  for (const char* other : {"10.0.0.1", "0.0.0.0", "::", "::2", "fe80::1", "::ffff:10.0.0.1"}) {
    EXPECT_TRUE(is_protected_from(state, users, make_address(other), state.client_tls.mode()))
        << other;
  }
  ServerOptions open;
  open.protected_mode = false;
  ServerState unprotected(open, command_table());
  EXPECT_FALSE(is_protected_from(unprotected, users, make_address("10.0.0.1"),
                                 unprotected.client_tls.mode()));
  ServerOptions certified;
  certified.client_tls = ClientTls::Mode::on;
  ServerState with_certificates(certified, command_table());
  EXPECT_TRUE(is_protected_from(with_certificates, users, make_address("10.0.0.1"),
                                with_certificates.client_tls.mode()));
  certified.client_certificates = tls::ClientCertificates::required;
  ServerState only_certified(certified, command_table());
  EXPECT_FALSE(is_protected_from(only_certified, users, make_address("10.0.0.1"),
                                 only_certified.client_tls.mode()));
}

TEST(Gate, HttpIsKnownByItsLines) {
  EXPECT_TRUE(is_http({"POST", "/", "HTTP/1.1"}, true));
  EXPECT_TRUE(is_http({"post"}, true));
  EXPECT_TRUE(is_http({"Host:", "localhost"}, true));
  EXPECT_TRUE(is_http({"DELETE", "/", "HTTP/1.0"}, true));
  // A page may choose a method that is a command, and a path that is a key.
  EXPECT_TRUE(is_http({"SET", "/k", "HTTP/1.1"}, true));
  EXPECT_TRUE(is_http({"DEL", "/a", "/b", "/c", "http/2.0"}, true));
  EXPECT_FALSE(is_http({"GET", "k"}, true));
  EXPECT_FALSE(is_http({"SET", "HTTP/1.1", "k"}, true));
  EXPECT_FALSE(is_http({}, true));
  // No page can send an array as its first bytes.
  EXPECT_FALSE(is_http({"SET", "k", "HTTP/1.1"}, false));
  EXPECT_TRUE(is_http({"POST"}, false));
}

TEST(Gate, ConnectionsMayComeInABurstAndThenAtTheRate) {
  ConnectionRate rate(10);
  const nanoseconds begin = seconds(100);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(rate.take(begin), nanoseconds(0)) << i;
  EXPECT_EQ(rate.take(begin), milliseconds(100));
  EXPECT_EQ(rate.take(begin + milliseconds(100)), milliseconds(100));
  EXPECT_EQ(rate.take(begin + seconds(10)), nanoseconds(0));
  ConnectionRate unlimited(0);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(unlimited.take(begin), nanoseconds(0));
}

TEST(Gate, TheLastQuarterOfTheMemoryIsNotForLargeRequests) {
  constexpr std::size_t kMax = std::size_t{8} << 20U;
  constexpr std::size_t kLarge = std::size_t{6} << 20U;
  ClientMemory memory(kMax);
  ClientMemory::Share large;
  ClientMemory::Share other;
  ClientMemory::Share middle;
  ClientMemory::Share small;
  EXPECT_TRUE(memory.set(large, kLarge, kUser));
  EXPECT_FALSE(memory.set(other, ClientMemory::kLargeBytes + 1, kUser));
  EXPECT_TRUE(memory.set(other, ClientMemory::kLargeBytes, kUser));
  EXPECT_TRUE(memory.set(middle, ClientMemory::kLargeBytes, kUser));
  EXPECT_FALSE(memory.set(middle, 2 * ClientMemory::kLargeBytes, kUser));
  EXPECT_TRUE(memory.set(small, ClientMemory::kFreeBytes, kUser));
  EXPECT_LE(memory.used(), kMax);
  memory.give_back(large);
  memory.give_back(other);
  memory.give_back(middle);
  memory.give_back(small);
  EXPECT_EQ(memory.used(), 0U);
}

TEST(Gate, StrangersShareAnEighthOfTheMemory) {
  constexpr std::size_t kMax = std::size_t{8} << 20U;
  constexpr std::size_t kEighth = std::size_t{1} << 20U;
  constexpr std::size_t kFree = ClientMemory::kFreeBytes;
  ClientMemory memory(kMax);
  ClientMemory::Share one;
  ClientMemory::Share two;
  EXPECT_FALSE(memory.set(one, kEighth + kFree + 1, kStranger));
  EXPECT_TRUE(memory.set(one, kEighth + kFree, kStranger));
  EXPECT_FALSE(memory.set(two, kFree + 1, kStranger));
  EXPECT_TRUE(memory.set(two, kFree, kStranger)) << "small requests cost nothing";
  EXPECT_EQ(memory.used(), kEighth);
  // It logs in: its memory is that of a user, and another stranger has room.
  EXPECT_TRUE(memory.set(one, kEighth + kFree, kUser));
  EXPECT_EQ(memory.used_by_strangers(), 0U);
  EXPECT_TRUE(memory.set(two, kEighth + kFree, kStranger));
  // And it cannot become a stranger with all that.
  EXPECT_FALSE(memory.set(one, kEighth, kStranger));
  EXPECT_EQ(memory.used(), 2 * kEighth) << "nothing has changed";
  memory.give_back(one);
  memory.give_back(two);
  EXPECT_EQ(memory.used(), 0U);
  EXPECT_EQ(memory.used_by_strangers(), 0U);
}

TEST(Gate, StrangersGetNothingFromTheLastQuarter) {
  constexpr std::size_t kMax = std::size_t{8} << 20U;
  ClientMemory memory(kMax);
  ClientMemory::Share users;
  ClientMemory::Share stranger;
  ClientMemory::Share user;
  EXPECT_TRUE(memory.set(users, (std::size_t{6} << 20U) + ClientMemory::kFreeBytes, kUser));
  EXPECT_FALSE(memory.set(stranger, ClientMemory::kFreeBytes + 1, kStranger));
  EXPECT_TRUE(memory.set(user, ClientMemory::kFreeBytes + 1, kUser));
  EXPECT_EQ(memory.used_by_strangers(), 0U);
}

}  // namespace
}  // namespace leasehold::server
