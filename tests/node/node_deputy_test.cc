// The deputy as a real process, beside a real one that ends in every way that there is.

#include <leasehold/node/node_deputy.h>
#include <leasehold/wire/notice.h>

#include <gtest/gtest.h>
#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/udp.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <system_error>

namespace leasehold::node {
namespace {

using std::chrono::milliseconds;

constexpr const char* kProgram = LEASEHOLD_DEPUTY;
const raft::Peer kSelf{raft::NodeId(1), raft::Uuid{1, 1}, {raft::Incarnation(4), 5}};
constexpr raft::NodeId kPeer{2};

class DeputyTest : public ::testing::Test {
 protected:
  /// A child that has a deputy, and does `then`.
  template <class Then>
  pid_t start(Then then) {
    const std::uint16_t port = peer_.local_endpoint().port();
    const pid_t child = ::fork();
    if (child != 0) return child;
    asio::io_context io;
    Deputy deputy(io, kProgram, kSelf, [](const std::string&) {});
    if (!deputy.start("the notice").ok()) ::_exit(9);
    deputy.set_peers({{kPeer, {"127.0.0.1", port}}});
    then(io, deputy);
    ::_exit(8);
  }
  /// The next datagram within `longest`; none: none came.
  std::optional<std::string> hear(milliseconds longest) {
    std::array<char, 256> bytes{};
    std::optional<std::string> heard;
    peer_.async_receive_from(asio::buffer(bytes), from_,
                             [&](const asio::error_code& error, std::size_t count) {
                               if (!error) heard = std::string(bytes.data(), count);
                             });
    io_.restart();
    io_.run_for(longest);
    if (!heard) {
      peer_.cancel();
      io_.restart();
      io_.run();
    }
    return heard;
  }
  static void end(pid_t child, int signal) {
    ::kill(child, signal);
    ::waitpid(child, nullptr, 0);
  }
  static void wait_for_end(asio::io_context& io, Deputy&) {
    for (;;) io.run_for(milliseconds(100));
  }

  asio::io_context io_;
  asio::ip::udp::socket peer_{io_, {asio::ip::make_address("127.0.0.1"), 0}};
  asio::ip::udp::endpoint from_;
};

TEST_F(DeputyTest, TellsThePeersWhenTheProcessIsKilled) {
  const pid_t child = start(wait_for_end);
  ASSERT_EQ(hear(milliseconds(300)), std::nullopt);
  end(child, SIGKILL);
  EXPECT_EQ(hear(milliseconds(2000)), "the notice");
  // The deputy repeats it until there is an answer.
  EXPECT_EQ(hear(milliseconds(2000)), "the notice");
  const std::string answer = wire::encode_notice_answer(kSelf, kPeer);
  peer_.send_to(asio::buffer(answer), from_);
  while (hear(milliseconds(200))) {
  }
  EXPECT_EQ(hear(milliseconds(1000)), std::nullopt);
}

TEST_F(DeputyTest, TellsThemWhenItEndsByItself) {
  const pid_t child = start([](asio::io_context& io, Deputy&) {
    io.run_for(milliseconds(200));  // a deputy that has just been started may come too late
    ::_exit(0);
  });
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(hear(milliseconds(2000)), "the notice");
}

TEST_F(DeputyTest, SaysNothingOfAProcessThatIsStopped) {
  const pid_t child = start(wait_for_end);
  ASSERT_EQ(hear(milliseconds(300)), std::nullopt);
  ::kill(child, SIGSTOP);
  EXPECT_EQ(hear(milliseconds(500)), std::nullopt);
  end(child, SIGKILL);
  EXPECT_EQ(hear(milliseconds(2000)), "the notice");
}

TEST_F(DeputyTest, SaysNothingWhenTheNodeStopsInGoodOrder) {
  const pid_t child = start([](asio::io_context&, Deputy& deputy) {
    deputy.stop(Deputy::Ending::silent);
    ::_exit(0);
  });
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(hear(milliseconds(500)), std::nullopt);
}

// A leader that stops is missed: the others learn of its end, and not before.
TEST_F(DeputyTest, StaysForTheEndOfALeaderThatStops) {
  const pid_t child = start([](asio::io_context& io, Deputy& deputy) {
    deputy.stop(Deputy::Ending::tells);
    for (;;) io.run_for(milliseconds(100));
  });
  ASSERT_EQ(hear(milliseconds(500)), std::nullopt);
  end(child, SIGKILL);
  EXPECT_EQ(hear(milliseconds(2000)), "the notice");
}

// A supervisor sends them to all processes of the node at once.
TEST_F(DeputyTest, OutlivesTheSignalsThatEndTheNode) {
  const pid_t child = start([](asio::io_context& io, Deputy& deputy) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::kill(deputy.process(), signal);
    io.run_for(milliseconds(300));
    if (deputy.restarts() > 0 || !deputy.runs()) ::_exit(7);  // its peers would hear nothing
    ::kill(::getpid(), SIGKILL);
  });
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(hear(milliseconds(2000)), "the notice");
}

// It would tell what it was given long ago.
TEST_F(DeputyTest, IsReplacedWhenItReadsNothing) {
  const pid_t child = start([&](asio::io_context& io, Deputy& deputy) {
    ::kill(deputy.process(), SIGSTOP);
    const std::uint16_t port = peer_.local_endpoint().port();
    for (std::uint16_t more = 0; deputy.restarts() == 0 || !deputy.runs(); ++more) {
      deputy.set_peers({{kPeer, {"127.0.0.1", port}}, {raft::NodeId(3 + more), {"127.0.0.1", 1}}});
      io.run_for(milliseconds(2));
    }
    ::kill(::getpid(), SIGKILL);
  });
  EXPECT_EQ(hear(milliseconds(20'000)), "the notice");
  ::waitpid(child, nullptr, 0);
}

TEST_F(DeputyTest, IsStartedAgainWhenItIsGone) {
  const pid_t child = start([](asio::io_context& io, Deputy& deputy) {
    ::kill(deputy.process(), SIGKILL);
    while (deputy.restarts() == 0 || !deputy.runs()) io.run_for(milliseconds(10));
    ::kill(::getpid(), SIGKILL);
  });
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(hear(milliseconds(2000)), "the notice");
}

// A few hundred lines and no library: it stands beside every node of a small machine.
TEST_F(DeputyTest, IsSmall) {
  asio::io_context io;
  Deputy deputy(io, kProgram, kSelf, [](const std::string&) {});
  ASSERT_TRUE(deputy.start("the notice").ok());
  std::ifstream status("/proc/" + std::to_string(deputy.process()) + "/status");
  std::string line;
  long resident = 0;
  while (std::getline(status, line)) {
    if (line.rfind("VmRSS:", 0) == 0) resident = std::stol(line.substr(6));
  }
  EXPECT_GT(resident, 0);
  EXPECT_LT(resident, 2048);  // KiB
}

// A connection or a port of the node that stayed open in it would outlive the node.
TEST_F(DeputyTest, HasNothingOfTheNodeOpen) {
  asio::io_context io;
  asio::ip::udp::socket socket(io, {asio::ip::make_address("127.0.0.1"), 0});
  Deputy deputy(io, kProgram, kSelf, [](const std::string&) {});
  ASSERT_TRUE(deputy.start("the notice").ok());
  const std::filesystem::path open = "/proc/" + std::to_string(deputy.process()) + "/fd";
  std::set<std::string> found;
  for (int look = 0; look < 200; ++look) {
    found.clear();
    for (const auto& entry : std::filesystem::directory_iterator(open)) {
      std::error_code gone;
      const std::string what = std::filesystem::read_symlink(entry.path(), gone).string();
      found.insert(what.substr(0, what.find(':')));
    }
    if (found.size() == 2) break;
    io.run_for(milliseconds(5));
  }
  // Its channel, and the descriptor of this process.
  EXPECT_EQ(found, (std::set<std::string>{"anon_inode", "socket"}));
}

TEST_F(DeputyTest, SaysThatThereIsNoSuchProgram) {
  asio::io_context io;
  Deputy deputy(io, "/nowhere/leasehold-deputy", kSelf, [](const std::string&) {});
  const auto started = deputy.start("the notice");
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace leasehold::node
