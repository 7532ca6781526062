#include <leasehold/bench/workload.h>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

namespace leasehold::bench {
namespace {

/// Two ends of one connection.
std::array<Descriptor, 2> connected_pair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

TEST(Workload, RequestsAreTheRedisProtocol) {
  const Workload get{Operation::get, 10, 5};
  EXPECT_EQ(request_of(get, 7), "*2\r\n$3\r\nGET\r\n$14\r\nkey:0000000007\r\n");
  EXPECT_EQ(reply_of(get, 7), "$5\r\nkey:0\r\n");
  const Workload set{Operation::set, 10, 5};
  EXPECT_EQ(request_of(set, 7), "*3\r\n$3\r\nSET\r\n$14\r\nkey:0000000007\r\n$5\r\nkey:0\r\n");
  EXPECT_EQ(reply_of(set, 7), "+OK\r\n");
  EXPECT_EQ(command_of("LEASEHOLD READMODE log"),
            "*3\r\n$9\r\nLEASEHOLD\r\n$8\r\nREADMODE\r\n$3\r\nlog\r\n");
}

TEST(Workload, AllRequestsOfAKindHaveOneSize) {
  for (const Operation operation : {Operation::get, Operation::set}) {
    const Workload workload{operation, 1'000'000'000, 256};
    for (const std::uint64_t key : {0ULL, 1ULL, 999'999ULL, 999'999'999ULL}) {
      EXPECT_EQ(request_of(workload, key).size(), request_bytes(workload));
      EXPECT_EQ(reply_of(workload, key).size(), reply_bytes(workload));
    }
  }
}

TEST(Workload, ARenewalNamesTheLeaseOfItsKeyAndThoseBehindIt) {
  Workload renew{Operation::renew, 10};
  EXPECT_EQ(request_of(renew, 7), "*2\r\n$11\r\nLEASE.RENEW\r\n$10\r\n1000000007\r\n");
  EXPECT_EQ(reply_of(renew, 7), "*1\r\n:10000\r\n");
  renew.ids = 2;
  renew.ttl_ms = 500;
  EXPECT_EQ(request_of(renew, 9),
            "*3\r\n$11\r\nLEASE.RENEW\r\n$10\r\n1000000009\r\n$10\r\n1000000000\r\n");
  EXPECT_EQ(reply_of(renew, 9), "*2\r\n:500\r\n:500\r\n");
}

TEST(Workload, KeysHaveDifferentValues) {
  EXPECT_NE(key_value(1, 256), key_value(2, 256));
  EXPECT_EQ(key_value(1, 256).size(), 256U);
}

TEST(Workload, RepliesAreCutWhereverTheyArrive) {
  auto ends = connected_pair();
  const Workload get{Operation::get, 10, 20};
  const std::string bytes =
      reply_of(get, 1) + "-NOLEADER try again\r\n" + "$-1\r\n" + reply_of(get, 2);
  ASSERT_TRUE(write_all(ends[0], bytes).ok());
  std::string ahead;
  for (const std::string& expected : {reply_of(get, 1), std::string("-NOLEADER try again\r\n"),
                                      std::string("$-1\r\n"), reply_of(get, 2)}) {
    auto reply = read_reply(ends[1], reply_bytes(get), ahead);
    ASSERT_TRUE(reply.ok()) << reply.error().message;
    EXPECT_EQ(reply.value(), expected);
  }
  EXPECT_EQ(ahead, "");
}

TEST(Workload, ALeaseThatIsGoneMakesTheReplyShorter) {
  Workload renew{Operation::renew, 10};
  renew.ids = 3;
  const std::string with_null = "*3\r\n:10000\r\n$-1\r\n:10000\r\n";
  const std::string bytes = with_null + "-NOLEADER try again\r\n" + reply_of(renew, 0);
  for (std::size_t cut = 0; cut < with_null.size(); ++cut) {
    EXPECT_EQ(reply_length(bytes.substr(0, cut), reply_bytes(renew)), 0U) << cut;
  }
  auto ends = connected_pair();
  ASSERT_TRUE(write_all(ends[0], bytes).ok());
  std::string ahead;
  for (const std::string& expected :
       {with_null, std::string("-NOLEADER try again\r\n"), reply_of(renew, 0)}) {
    auto reply = read_reply(ends[1], reply_bytes(renew), ahead);
    ASSERT_TRUE(reply.ok()) << reply.error().message;
    EXPECT_EQ(reply.value(), expected);
  }
}

TEST(Workload, ClosedConnectionIsAnError) {
  auto ends = connected_pair();
  ends[0] = Descriptor();
  std::string ahead;
  auto reply = read_reply(ends[1], 5, ahead);
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().code, ErrorCode::stopped);
}

TEST(Workload, BadAddressesAreNamed) {
  for (const char* address : {"", "7201", ":7201", "127.0.0.1:", "127.0.0.1:port"}) {
    auto socket = connect_tcp(address);
    ASSERT_FALSE(socket.ok()) << address;
    EXPECT_EQ(socket.error().code, ErrorCode::invalid_argument) << socket.error().message;
  }
}

}  // namespace
}  // namespace leasehold::bench
