// Peers prove who they are: by the group's key, or as processes of one user on loopback.
#include <leasehold/tests/base/temporary_folder.h>
#include <leasehold/tests/net/tcp_rig.h>
#include <leasehold/tls/stream.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <fstream>
#include <set>
#include <string>

namespace leasehold::net {
namespace {

using raft::NodeId;
using ::testing::HasSubstr;

const std::string kOldKey(64, 'a');
const std::string kNewKey(64, 'b');

class Protected : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_.path(name);
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
  static GuardPtr load(const PeerSecurity& security) {
    auto guard = PeerGuard::load(security);
    EXPECT_TRUE(guard.ok()) << guard.error().message;
    return guard.value();
  }
  GuardPtr of_keys(const std::string& name, const std::string& keys) {
    PeerSecurity security;
    security.dial = Protection::key;
    security.key_file = write(name, keys);
    return load(security);
  }
  TestNode& start(std::uint64_t id, GuardPtr guard) {
    TcpOptions options = TcpRig::options(id);
    options.guard = std::move(guard);
    return rig.start(std::move(options));
  }
  static bool connected(TestNode& a, TestNode& b) {
    return a.transport->connected(b.options.id) && b.transport->connected(a.options.id);
  }
  bool talk(TestNode& a, TestNode& b) {
    rig.introduce_all();
    if (!rig.run_until([&] { return connected(a, b); })) return false;
    const std::size_t before_a = a.received.size();
    const std::size_t before_b = b.received.size();
    a.transport->send(b.options.id, numbered(7));
    b.transport->send(a.options.id, numbered(8));
    return rig.run_until(
        [&] { return a.received.size() > before_a && b.received.size() > before_b; });
  }
  /// Each has refused the other for want of proof, and no message has passed.
  void expect_strangers(TestNode& a, TestNode& b) {
    rig.introduce_all();
    EXPECT_TRUE(rig.run_until([&] {
      return a.rejected(RejectReason::unproved) > 0 && b.rejected(RejectReason::unproved) > 0;
    }));
    EXPECT_FALSE(connected(a, b));
    EXPECT_TRUE(a.peers_up.empty());
    EXPECT_TRUE(b.peers_up.empty());
    EXPECT_EQ(a.transport->counters().accepts + b.transport->counters().accepts, 0U);
  }

  TemporaryFolder folder_;
  TcpRig rig;
};

TEST_F(Protected, NodesWithOneKeyTalk) {
  TestNode& one = start(1, of_keys("one", kOldKey + "\n"));
  TestNode& two = start(2, of_keys("two", kOldKey));
  ASSERT_TRUE(talk(one, two));
  one.transport->send(NodeId(2), with_payload(9, std::size_t{5} << 20U));
  for (std::uint64_t i = 0; i < 1000; ++i) one.transport->send(NodeId(2), numbered(100 + i));
  ASSERT_TRUE(rig.run_until([&] { return two.received.size() == 1002; }));
  EXPECT_EQ(two.received[1].second, with_payload(9, std::size_t{5} << 20U));
  for (std::uint64_t i = 0; i < 1000; ++i)
    EXPECT_EQ(number_of(two.received[2 + i].second), 100 + i);
}

TEST_F(Protected, AnotherKeyIsRefused) {
  expect_strangers(start(1, of_keys("one", kOldKey)), start(2, of_keys("two", kNewKey)));
}

TEST_F(Protected, AKeyIsReplacedInThreeSteps) {
  TestNode& one = start(1, of_keys("one", kOldKey));
  TestNode& two = start(2, of_keys("two", kOldKey + "\n" + kNewKey + "\n"));
  ASSERT_TRUE(talk(one, two));
  one.transport->set_guard(of_keys("one", kOldKey + "\n" + kNewKey));
  two.transport->set_guard(of_keys("two", kNewKey + "\n" + kOldKey));
  one.transport->set_guard(of_keys("one", kNewKey + "\n" + kOldKey));
  ASSERT_TRUE(talk(one, two));
  EXPECT_EQ(one.transport->counters().disconnects + two.transport->counters().disconnects, 0U);
  // The connections of the old key end with it.
  one.transport->set_guard(of_keys("one", kNewKey));
  two.transport->set_guard(of_keys("two", kNewKey));
  EXPECT_GT(one.transport->counters().disconnects, 0U);
  ASSERT_TRUE(talk(one, two));
  EXPECT_EQ(one.rejected(RejectReason::unproved) + two.rejected(RejectReason::unproved), 0U);
}

TEST_F(Protected, NoMessageIsLostWhileAKeyIsReplaced) {
  constexpr std::size_t kLarge = std::size_t{1} << 20U;
  TestNode& one = start(1, of_keys("one", kOldKey));
  TestNode& two = start(2, of_keys("two", kOldKey));
  ASSERT_TRUE(talk(one, two));
  two.received.clear();
  std::uint64_t sent = 0;
  const auto send_some = [&] {
    // More than the kernel takes at once waits on the old connection.
    one.transport->send(NodeId(2), with_payload(sent++, kLarge));
    for (int i = 0; i < 10; ++i) one.transport->send(NodeId(2), numbered(sent++));
  };
  const std::string steps[] = {kOldKey + "\n" + kNewKey, kNewKey + "\n" + kOldKey, kNewKey};
  for (const std::string& keys : steps) {
    for (TestNode* node : {&one, &two}) {
      send_some();
      rig.io.poll_one();
      const std::uint64_t before = node->transport->counters().connects;
      node->transport->set_guard(of_keys("any", keys));
      for (int i = 0; i < 10; ++i) {
        send_some();
        rig.io.poll_one();
      }
      ASSERT_TRUE(rig.run_until([&] {
        return node->transport->counters().connects > before && two.received.size() == sent;
      })) << "received "
          << two.received.size() << " of " << sent;
    }
  }
  std::set<std::uint64_t> numbers;
  for (const auto& [from, message] : two.received) numbers.insert(number_of(message));
  EXPECT_EQ(numbers.size(), sent);
  EXPECT_EQ(one.transport->counters().dropped_unconnected, 0U);
  EXPECT_EQ(one.transport->counters().dropped_full, 0U);
  EXPECT_EQ(one.rejected(RejectReason::unproved) + two.rejected(RejectReason::unproved), 0U);
}

TEST_F(Protected, AConnectionStaysWhileThePeerRefusesTheNewKey) {
  TestNode& one = start(1, of_keys("one", kOldKey));
  TestNode& two = start(2, of_keys("two", kOldKey));
  ASSERT_TRUE(talk(one, two));
  const std::string old = one.transport->proofs(NodeId(2)).to;
  one.transport->set_guard(of_keys("one", kNewKey + "\n" + kOldKey));
  ASSERT_TRUE(rig.run_until([&] { return two.rejected(RejectReason::unproved) >= 2; }));
  ASSERT_TRUE(talk(one, two));
  EXPECT_EQ(one.transport->proofs(NodeId(2)).to, old);
  EXPECT_EQ(one.transport->counters().disconnects, 0U);
  // It tries again.
  two.transport->set_guard(of_keys("two", kOldKey + "\n" + kNewKey));
  EXPECT_TRUE(rig.run_until([&] { return one.transport->proofs(NodeId(2)).to != old; }));
  EXPECT_EQ(one.transport->proofs(NodeId(2)).from, old);
  ASSERT_TRUE(talk(one, two));
}

TEST_F(Protected, AHandshakeDoesNotOutliveItsKey) {
  // The key goes after each number of steps of the handshake.
  for (int steps = 0; steps < 40; ++steps) {
    TcpRig each;
    TcpOptions options = TcpRig::options(1);
    options.guard = of_keys("one", kNewKey + "\n" + kOldKey);
    TestNode& one = each.start(options);
    options = TcpRig::options(2);
    options.guard = of_keys("two", kOldKey);
    options.address = "127.0.0.1:1";  // so that `one`, which does not know it, may let it in
    TestNode& two = each.start(options);
    each.introduce(one, two);
    for (int i = 0; i < steps; ++i) {
      each.io.restart();
      each.io.run_one_for(std::chrono::milliseconds(1));
    }
    one.transport->set_guard(of_keys("one", kNewKey));
    ASSERT_TRUE(each.run_until([&] { return one.rejected(RejectReason::unproved) > 0; })) << steps;
    EXPECT_FALSE(two.transport->connected(NodeId(1))) << steps;
    EXPECT_EQ(one.transport->proofs(NodeId(2)).from, "") << steps;
  }
}

TEST_F(Protected, AnIntroductionNeedsWhatIsAskedForNow) {
  TestNode& one = start(1, PeerGuard::plain());
  Stranger early(one.transport->port());
  rig.poll();  // it is taken by the plain guard
  one.transport->set_guard(of_keys("one", kOldKey));
  bool judged = false;
  one.introduction = [&](const wire::Hello&) {
    judged = true;
    return std::optional<wire::Refusal>();
  };
  wire::Hello hello = test_hello(2, 1);
  hello.purpose = wire::Purpose::introduction;
  early.send(hello_bytes(hello));
  ASSERT_TRUE(rig.run_until([&] { return early.ended(); }));
  EXPECT_FALSE(judged);
  EXPECT_EQ(one.rejected(RejectReason::unproved), 1U);
}

TEST_F(Protected, HalfOfARecordCostsNothing) {
  const GuardPtr guard = of_keys("key", kOldKey);
  TestNode& one = start(1, guard);
  asio::ip::tcp::socket socket(rig.io);
  socket.connect({asio::ip::address_v4::loopback(), one.transport->port()});
  socket.non_blocking(true);
  tls::Stream stream(guard->dialling(), tls::Stream::Side::dialled, socket.native_handle());
  ASSERT_TRUE(rig.run_until([&] { return stream.handshake().state == tls::Stream::State::done; }));
  const std::string half("\x17\x03\x03\x00\x40 and no more", 17);
  ASSERT_EQ(::send(socket.native_handle(), half.data(), half.size(), 0), 17);
  rig.io.restart();
  rig.io.run_one_for(std::chrono::milliseconds(100));
  int turns = 0;
  while (turns < 1000 && rig.io.poll_one() > 0) ++turns;
  EXPECT_LT(turns, 100);
}

TEST_F(Protected, ARenewalThatIsNotWantedAnyMoreEnds) {
  TestNode& one = start(1, PeerGuard::plain());
  TestNode& two = start(2, PeerGuard::plain());
  ASSERT_TRUE(talk(one, two));
  PeerSecurity moving;
  moving.dial = Protection::key;
  moving.accept_plain = true;
  moving.key_file = write("key", kOldKey);
  one.transport->set_guard(load(moving));
  ASSERT_TRUE(rig.run_until([&] { return one.rejected(RejectReason::unproved) > 0; }));
  const std::uint64_t connects = one.transport->counters().connects;
  one.transport->set_guard(PeerGuard::plain());
  // Longer than the pause before it would dial again.
  asio::steady_timer later(rig.io, 3 * one.options.limits.reconnect_max);
  bool is_later = false;
  later.async_wait([&](const asio::error_code&) { is_later = true; });
  ASSERT_TRUE(rig.run_until([&] { return is_later; }));
  EXPECT_EQ(one.transport->counters().connects, connects);
  EXPECT_EQ(one.transport->counters().disconnects, 0U);
  EXPECT_TRUE(talk(one, two));
}

TEST_F(Protected, APlainConnectionOfAnybodyEndsWhenOnlyThisUsersAreTaken) {
  PeerSecurity of_all;
  of_all.plain_beyond_loopback = true;
  TestNode& one = start(1, load(of_all));
  TestNode& two = start(2, load(of_all));
  ASSERT_TRUE(talk(one, two));
  one.transport->set_guard(load(of_all));
  EXPECT_EQ(one.transport->counters().disconnects, 0U);
  one.transport->set_guard(PeerGuard::plain());
  EXPECT_EQ(one.transport->counters().disconnects, 2U);
  ASSERT_TRUE(talk(one, two));
  // These were asked for.
  one.transport->set_guard(load(of_all));
  one.transport->set_guard(PeerGuard::plain());
  EXPECT_EQ(one.transport->counters().disconnects, 2U);
}

TEST_F(Protected, AGroupMovesFromPlainToAKeyNodeByNode) {
  PeerSecurity both;
  both.accept_key = true;
  both.key_file = write("key", kOldKey);
  PeerSecurity first = both;
  first.dial = Protection::key;
  first.accept_plain = true;
  TestNode& one = start(1, load(both));
  TestNode& two = start(2, load(both));
  ASSERT_TRUE(talk(one, two));
  one.transport->set_guard(load(first));
  ASSERT_TRUE(talk(one, two));
  two.transport->set_guard(load(first));
  ASSERT_TRUE(talk(one, two));
  first.accept_plain = false;
  one.transport->set_guard(load(first));
  two.transport->set_guard(load(first));
  ASSERT_TRUE(talk(one, two));
  // And back. The sign to go on is what both see.
  first.accept_plain = true;
  for (const PeerSecurity& security : {first, both, PeerSecurity()}) {
    one.transport->set_guard(load(security));
    ASSERT_TRUE(talk(one, two));
    two.transport->set_guard(load(security));
    ASSERT_TRUE(talk(one, two));
    const std::string kind = name_of(security.dial);
    ASSERT_TRUE(rig.run_until([&] {
      const PeerProofs seen = one.transport->proofs(NodeId(2));
      const PeerProofs other = two.transport->proofs(NodeId(1));
      return seen.to.starts_with(kind) && seen.from.starts_with(kind) &&
             other.to.starts_with(kind) && other.from.starts_with(kind);
    }));
  }
  EXPECT_EQ(one.rejected(RejectReason::unproved) + two.rejected(RejectReason::unproved), 0U);
}

TEST_F(Protected, APlainNodeIsRefusedAndLearnsWhy) {
  TestNode& one = start(1, of_keys("one", kOldKey));
  TestNode& two = start(2, PeerGuard::plain());
  expect_strangers(one, two);
  EXPECT_TRUE(rig.run_until([&] {
    for (const Rejection& rejection : two.rejections) {
      if (rejection.error.message.find("takes no plain connections") != std::string::npos) {
        return true;
      }
    }
    return false;
  }));
}

TEST_F(Protected, AStrangerWithoutTheKeyMovesNothing) {
  TestNode& one = start(1, of_keys("one", kOldKey));
  rig.introduce(start(2, of_keys("two", kOldKey)), one);
  const std::uint64_t accepts = one.transport->counters().accepts;
  Stranger plain(one.transport->port());
  plain.send(hello_bytes(test_hello(2, 1)));
  plain.send(message_bytes(numbered(1)));
  // A record of TLS, and then nothing that fits.
  Stranger garbage(one.transport->port());
  garbage.send(std::string("\x16\x03\x01\x00\x05", 5) + "hello" + std::string(1000, 'x'));
  EXPECT_TRUE(rig.run_until([&] { return plain.ended() && garbage.ended(); }));
  EXPECT_EQ(one.rejected(RejectReason::unproved), 2U);
  EXPECT_EQ(one.transport->counters().accepts, accepts);
  EXPECT_TRUE(one.received.empty());
}

TEST_F(Protected, OneThatIsSilentInTheHandshakeIsClosed) {
  TcpOptions options = TcpRig::options(1);
  options.guard = of_keys("one", kOldKey);
  options.limits.handshake_timeout = std::chrono::milliseconds(30);
  TestNode& one = rig.start(options);
  Stranger begins(one.transport->port());
  begins.send(std::string("\x16\x03\x01\x02\x00", 5));
  Stranger silent(one.transport->port());
  EXPECT_TRUE(rig.run_until([&] { return begins.ended() && silent.ended(); }));
  EXPECT_EQ(one.rejected(RejectReason::handshake_timeout), 2U);
}

TEST_F(Protected, AnIntroductionNeedsTheKeyToo) {
  TestNode& one = start(1, of_keys("one", kOldKey));
  TestNode& two = start(2, of_keys("two", kOldKey));
  TestNode& three = start(3, of_keys("three", kNewKey));
  std::optional<Result<wire::Hello>> known;
  std::optional<Result<wire::Hello>> refused;
  const std::string address = "127.0.0.1:" + std::to_string(one.transport->port());
  two.transport->introduce({NodeId(1), address}, [&](Result<wire::Hello> hello) { known = hello; });
  three.transport->introduce({NodeId(1), address},
                             [&](Result<wire::Hello> hello) { refused = hello; });
  ASSERT_TRUE(rig.run_until([&] { return known && refused; }));
  EXPECT_TRUE(known->ok());
  EXPECT_FALSE(refused->ok());
}

TEST_F(Protected, PlainStaysOnLoopback) {
  TcpOptions options = TcpRig::options(1);
  options.listen = "0.0.0.0:0";
  const auto begins = [&](GuardPtr guard) {
    options.guard = std::move(guard);
    TcpTransport transport(rig.io, options, {});
    return transport.start();
  };
  const Result<void> refused = begins(PeerGuard::plain());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(refused.error().message, HasSubstr("leasehold cert key"));
  EXPECT_TRUE(begins(of_keys("one", kOldKey)).ok());
  options.guard = of_keys("one", kOldKey);
  TcpTransport runs(rig.io, options, {});
  ASSERT_TRUE(runs.start().ok());
  EXPECT_FALSE(runs.may_protect_by(PeerSecurity{}).ok());
  EXPECT_TRUE(runs.may_protect_by(options.guard->security()).ok());
  PeerSecurity trusting;
  trusting.plain_beyond_loopback = true;
  EXPECT_TRUE(begins(load(trusting)).ok());
  PeerSecurity moving;
  moving.dial = Protection::key;
  moving.key_file = folder_.path("one");
  moving.accept_plain = true;
  EXPECT_FALSE(begins(load(moving)).ok());
}

TEST_F(Protected, OnLoopbackAnotherUserIsAStranger) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user for this test";
  constexpr uid_t kAnotherUser = 65534;
  TestNode& one = start(1, PeerGuard::plain());
  ASSERT_TRUE(talk(one, start(2, PeerGuard::plain())));
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(kAnotherUser, kAnotherUser, kAnotherUser) != 0) ::_exit(2);
    Stranger stranger(one.transport->port());
    wire::Hello hello = test_hello(2, 1);
    hello.incarnation = raft::Incarnation(9);
    stranger.send(hello_bytes(hello));
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  // Its process has gone, and its bytes have come: nobody's socket proves nothing.
  EXPECT_TRUE(rig.run_until([&] { return one.rejected(RejectReason::unproved) == 1; }));
  EXPECT_EQ(one.transport->counters().accepts, 1U);
}

TEST_F(Protected, OnLoopbackAnotherUserCannotAnswerForAPeer) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user for this test";
  constexpr uid_t kAnotherUser = 65534;
  asio::ip::tcp::acceptor listener(rig.io, {asio::ip::address_v4::loopback(), 0});
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(kAnotherUser, kAnotherUser, kAnotherUser) != 0) ::_exit(2);
    const int taken = ::accept(listener.native_handle(), nullptr, nullptr);
    const std::string hello = hello_bytes(test_hello(2, 1));
    char byte = 0;
    static_cast<void>(::send(taken, hello.data(), hello.size(), 0));
    while (::recv(taken, &byte, 1, 0) > 0) {
    }
    ::_exit(0);
  }
  TestNode& one = start(1, PeerGuard::plain());
  const std::string address = "127.0.0.1:" + std::to_string(listener.local_endpoint().port());
  ASSERT_TRUE(one.transport->set_peer({NodeId(2), address}).ok());
  EXPECT_TRUE(rig.run_until([&] { return one.rejected(RejectReason::unproved) >= 1; }));
  EXPECT_TRUE(one.peers_up.empty());
  int status = 0;
  ::kill(child, SIGKILL);
  EXPECT_EQ(::waitpid(child, &status, 0), child);
}

TEST_F(Protected, AKeyFileIsForItsOwner) {
  PeerSecurity security;
  security.dial = Protection::key;
  const auto problem = [&](const std::string& path) {
    security.key_file = path;
    const auto guard = PeerGuard::load(security);
    return guard.ok() ? std::string() : guard.error().message;
  };
  EXPECT_THAT(problem(""), HasSubstr("leasehold cert key"));
  EXPECT_THAT(problem(folder_.path("nothing")), HasSubstr("cannot read"));
  EXPECT_THAT(problem(write("open", kOldKey, 0640)), HasSubstr("chmod 600"));
  EXPECT_THAT(problem(write("short", "abc\n")), HasSubstr("line 1"));
  EXPECT_THAT(problem(write("letters", kOldKey + "\n" + std::string(64, 'g'))),
              HasSubstr("line 2"));
  EXPECT_THAT(problem(write("zero", std::string(64, '0'))), HasSubstr("zero"));
  EXPECT_THAT(problem(write("empty", "# none\n\n")), HasSubstr("no key"));
  EXPECT_EQ(problem(write("good", "# of the group\n" + kOldKey + "\r\n")), "");
}

}  // namespace
}  // namespace leasehold::net
