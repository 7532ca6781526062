#include <leasehold/bench/open_loop.h>
#include <leasehold/bench/socket.h>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::bench {
namespace {

/// Accepts one connection on a thread and gives it to `serve`.
class OneShotServer {
 public:
  explicit OneShotServer(std::function<void(const Descriptor&)> serve) {
    auto listener = listen_tcp("127.0.0.1:0");
    EXPECT_TRUE(listener.ok());
    sockaddr_in bound{};
    socklen_t length = sizeof bound;
    getsockname(listener.value().get(), reinterpret_cast<sockaddr*>(&bound), &length);
    address_ = "127.0.0.1:" + std::to_string(ntohs(bound.sin_port));
    thread_ = std::thread([listening = std::move(listener).value(), answer = std::move(serve)] {
      auto socket = accept_tcp(listening);
      if (socket) answer(socket.value());
    });
  }
  ~OneShotServer() { thread_.join(); }
  const std::string& address() const { return address_; }

 private:
  std::string address_;
  std::thread thread_;
};

/// Answers with `reply` as many requests as have arrived, but only once `held` have.
void answer_from(const Descriptor& socket, std::size_t held, std::size_t request,
                 const std::string& reply) {
  std::array<char, 4096> chunk{};
  std::size_t arrived = 0;
  std::size_t answered = 0;
  for (;;) {
    auto got = read_some(socket, chunk.data(), chunk.size());
    if (!got) return;
    arrived += got.value();
    if (arrived / request < held) continue;
    std::string replies;
    for (; answered < arrived / request; ++answered) replies += reply;
    if (!write_all(socket, replies)) return;
  }
}

OpenLoopOptions options_for(const OneShotServer& server) {
  OpenLoopOptions options;
  options.address = server.address();
  options.rate = 2000;
  options.warmup_ms = 0;
  options.duration_ms = 100;
  options.connections = 1;
  return options;
}

TEST(OpenLoop, EveryRequestOfTheScheduleIsAnsweredAndCounted) {
  const Workload workload;
  const OneShotServer server([&workload](const Descriptor& socket) {
    answer_from(socket, 1, request_bytes(workload), reply_of(workload, 0));
  });
  auto result = open_loop(options_for(server));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result.value().reads.count(), 199U);
  EXPECT_EQ(result.value().late.count(), 199U);
  EXPECT_EQ(result.value().writes.count(), 0U);
  EXPECT_EQ(result.value().overflows, 0U);
  EXPECT_EQ(result.value().failures, 0U);
}

// A closed loop would have seen one slow request here; a schedule sees all that were due in that
// time.
TEST(OpenLoop, AStallOfTheServerIsSeenByAllThatWereDueMeanwhile) {
  const Workload workload;
  const OneShotServer server([&workload](const Descriptor& socket) {
    answer_from(socket, 101, request_bytes(workload), reply_of(workload, 0));
  });
  auto result = open_loop(options_for(server));
  ASSERT_TRUE(result.ok()) << result.error().message;
  const Histogram& reads = result.value().reads;
  EXPECT_EQ(reads.count(), 199U);
  // Requests are 0.5 ms apart: the first waited for a hundred more, the fiftieth for fifty.
  EXPECT_GE(reads.max(), 50'000'000U);
  EXPECT_GE(reads.quantile(0.75), 25'000'000U);
}

TEST(OpenLoop, WritesHaveAScheduleAndAServerOfTheirOwn) {
  const Workload get;
  Workload set;
  set.operation = Operation::set;
  const OneShotServer reader([&get](const Descriptor& socket) {
    answer_from(socket, 1, request_bytes(get), reply_of(get, 0));
  });
  const OneShotServer writer([&set](const Descriptor& socket) {
    answer_from(socket, 1, request_bytes(set), reply_of(set, 0));
  });
  OpenLoopOptions options = options_for(reader);
  options.write_address = writer.address();
  options.write_rate = 1000;
  auto result = open_loop(options);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result.value().reads.count(), 199U);
  // The first is due after 0.75 ms, between two reads.
  EXPECT_EQ(result.value().writes.count(), 100U);
  EXPECT_EQ(result.value().late.count(), 299U);
  EXPECT_EQ(result.value().failures, 0U);
}

TEST(OpenLoop, ConnectionsGoRoundTheAddresses) {
  const Workload workload;
  std::array<std::size_t, 2> arrived{};
  {
    const auto server_of = [&](std::size_t which) {
      return [&, which](const Descriptor& socket) {
        std::array<char, 4096> chunk{};
        for (std::size_t answered = 0;;) {
          auto got = read_some(socket, chunk.data(), chunk.size());
          if (!got) return;
          arrived.at(which) += got.value();
          for (; answered < arrived.at(which) / request_bytes(workload); ++answered) {
            if (!write_all(socket, reply_of(workload, 0))) return;
          }
        }
      };
    };
    const OneShotServer one(server_of(0));
    const OneShotServer other(server_of(1));
    OpenLoopOptions options = options_for(one);
    options.address += "," + other.address();
    options.connections = 2;
    auto result = open_loop(options);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result.value().reads.count(), 199U);
  }
  EXPECT_EQ(arrived.at(0), 100 * request_bytes(workload));
  EXPECT_EQ(arrived.at(1), 99 * request_bytes(workload));
}

std::uint64_t thread_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

TEST(OpenLoop, TheClientIsAwakeBeforeARequestIsDueAndAsleepForHalfOfTheTime) {
  const Workload workload;
  const OneShotServer server([&workload](const Descriptor& socket) {
    answer_from(socket, 1, request_bytes(workload), reply_of(workload, 0));
  });
  OpenLoopOptions options = options_for(server);
  options.rate = 100;
  options.duration_ms = 500;
  options.spin_us = 1'000'000;
  const std::uint64_t began = thread_ns();
  auto result = open_loop(options);
  const std::uint64_t used = thread_ns() - began;
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result.value().reads.count(), 49U);
  EXPECT_GT(used, 20'000'000U);
  EXPECT_LT(used, 350'000'000U);
}

TEST(OpenLoop, EachWaitIsListed) {
  const Workload workload;
  const OneShotServer server([&workload](const Descriptor& socket) {
    answer_from(socket, 101, request_bytes(workload), reply_of(workload, 0));
  });
  OpenLoopOptions options = options_for(server);
  options.list_waits = true;
  const std::uint64_t began = monotonic_ns();
  auto result = open_loop(options);
  ASSERT_TRUE(result.ok()) << result.error().message;
  const std::vector<Wait>& waits = result.value().waits;
  ASSERT_EQ(waits.size(), 199U);
  EXPECT_GE(waits[0].due, began);
  // Answered with the 101st, which is due 50 ms later.
  EXPECT_GE(waits[0].wait, 50'000'000U);
  for (std::size_t i = 0; i < waits.size(); ++i) {
    EXPECT_EQ(waits[i].due, waits[0].due + i * 500'000);
    EXPECT_LE(waits[i].late, waits[i].wait);
    EXPECT_FALSE(waits[i].write);
  }
}

// Three leases, two in a renewal, four renewals at once: all leases have their turn.
TEST(OpenLoop, RenewalsGoThroughAllLeasesInTurn) {
  Workload renew;
  renew.operation = Operation::renew;
  renew.keys = 3;
  renew.ids = 2;
  std::string arrived;
  OpenLoopOptions options;
  {
    const OneShotServer server([&](const Descriptor& socket) {
      std::array<char, 4096> chunk{};
      for (std::size_t answered = 0;;) {
        auto got = read_some(socket, chunk.data(), chunk.size());
        if (!got) return;
        arrived.append(chunk.data(), got.value());
        for (; answered < arrived.size() / request_bytes(renew); ++answered) {
          if (!write_all(socket, reply_of(renew, 0))) return;
        }
      }
    });
    options = options_for(server);
    options.workload = renew;
    options.burst = 4;
    options.rate = 400;
    auto result = open_loop(options);
    ASSERT_TRUE(result.ok()) << result.error().message;
    // Due at 10, 20, ... 90 ms.
    EXPECT_EQ(result.value().reads.count(), 36U);
    EXPECT_EQ(result.value().failures, 0U);
  }
  std::string expected;
  for (std::uint64_t i = 0; i < 36; ++i) expected += request_of(renew, 2 * i % 3);
  EXPECT_EQ(arrived, expected);
}

TEST(OpenLoop, ARenewalThatMissesALeaseIsAFailure) {
  Workload renew;
  renew.operation = Operation::renew;
  const OneShotServer server([&renew](const Descriptor& socket) {
    answer_from(socket, 1, request_bytes(renew), "*1\r\n$-1\r\n");
  });
  OpenLoopOptions options = options_for(server);
  options.workload = renew;
  auto result = open_loop(options);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result.value().failures, 199U);
  EXPECT_EQ(result.value().first_failure, "*1\r\n$-1\r\n");
}

TEST(OpenLoop, PastTheBoundRequestsAreOverflows) {
  const Workload workload;
  const OneShotServer server([&workload](const Descriptor& socket) {
    answer_from(socket, 10, request_bytes(workload), reply_of(workload, 0));
  });
  OpenLoopOptions options = options_for(server);
  options.in_flight_max = 10;
  options.rate = 1'000'000;  // the tenth is due long before a reply can arrive
  options.duration_ms = 10;
  auto result = open_loop(options);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_GT(result.value().overflows, 0U);
  EXPECT_EQ(result.value().overflows + result.value().reads.count(), 9'999U);
}

TEST(OpenLoop, ErrorRepliesAreFailures) {
  const Workload workload;
  const OneShotServer server([&workload](const Descriptor& socket) {
    answer_from(socket, 1, request_bytes(workload), "-NOLEADER try again\r\n");
  });
  auto result = open_loop(options_for(server));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result.value().failures, 199U);
  EXPECT_EQ(result.value().first_failure, "-NOLEADER try again\r\n");
}

Histogram of(std::uint64_t usual, std::uint64_t slow) {
  Histogram histogram;
  for (int i = 0; i < 95; ++i) histogram.record(usual);
  for (int i = 0; i < 5; ++i) histogram.record(slow);
  return histogram;
}

TEST(OpenLoop, AQuarterOfALatencyMayBeTheClientsOwn) {
  EXPECT_EQ(discard_reason(of(1000, 2000), of(250, 500)), "");
  EXPECT_EQ(discard_reason(of(1000, 2000), of(251, 500)),
            "at p50 the client itself was 0.3 us late of 1.0 us");
  EXPECT_EQ(discard_reason(of(1000, 2000), of(250, 501)),
            "at p99 the client itself was 0.5 us late of 2.0 us");
  EXPECT_EQ(discard_reason(Histogram(), Histogram()), "nothing was measured");
}

TEST(OpenLoop, ARunIsThrownAwayForItsReadsAndForItsWrites) {
  OpenLoopResult result;
  result.late = of(100, 100);
  result.reads = of(1000, 1000);
  EXPECT_EQ(discard_reason(result), "");
  result.writes = of(200, 1000);
  EXPECT_NE(discard_reason(result), "");
  result.reads.clear();
  EXPECT_NE(discard_reason(result), "");
  result.writes = of(1000, 1000);
  EXPECT_EQ(discard_reason(result), "");
}

TEST(OpenLoop, AServerThatGoesAwayIsAnError) {
  const OneShotServer server([](const Descriptor&) {});
  EXPECT_FALSE(open_loop(options_for(server)).ok());
}

}  // namespace
}  // namespace leasehold::bench
