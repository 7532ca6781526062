// Opens TLS connections on a schedule: each makes a whole handshake, asks PING, and closes.
//
//   handshakes PORT CA RATE COUNT
//
// RATE is connections a second, over several threads. Prints how many a second there were and how
// long each took from the connection to the answer.
#include <leasehold/bench/socket.h>
#include <leasehold/tls/context.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using leasehold::bench::Descriptor;

constexpr int kThreads = 8;

struct Lane {
  std::vector<double> took;  ///< milliseconds
  std::string problem;
};

/// Empty: it was answered.
std::string ping(const std::string& address, const leasehold::tls::ContextPtr& context) {
  auto socket = leasehold::bench::connect_tcp(address);
  if (!socket) return socket.error().message;
  const auto begun = socket.value().begin_tls(context);
  if (!begun) return begun.error().message;
  const auto sent = write_all(socket.value(), "PING\r\n");
  if (!sent) return sent.error().message;
  char reply[64];
  const auto got = read_some(socket.value(), reply, sizeof(reply));
  if (!got) return got.error().message;
  return std::string(reply, got.value()) == "+PONG\r\n" ? "" : "no PONG";
}

/// Every kThreads-th connection of the schedule, from `first` on.
void run_lane(Lane& lane, const std::string& address, const leasehold::tls::ContextPtr& context,
              Clock::time_point start, Clock::duration interval, int first, int count) {
  for (int i = first; i < count && lane.problem.empty(); i += kThreads) {
    std::this_thread::sleep_until(start + i * interval);
    const Clock::time_point begun = Clock::now();
    lane.problem = ping(address, context);
    lane.took.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begun).count());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 || std::atoi(argv[3]) < 1 || std::atoi(argv[4]) < 1) {
    return std::fputs("handshakes PORT CA RATE COUNT\n", stderr), 2;
  }
  const auto context = leasehold::tls::Context::be_client({"", "", argv[2], ""});
  if (!context) return std::fprintf(stderr, "%s\n", context.error().message.c_str()), 1;
  const std::string address = std::string("127.0.0.1:") + argv[1];
  const Clock::duration interval = std::chrono::nanoseconds(1'000'000'000 / std::atoi(argv[3]));
  const Clock::time_point start = Clock::now();
  std::vector<Lane> lanes(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      run_lane(lanes[static_cast<std::size_t>(i)], address, context.value(), start, interval, i,
               std::atoi(argv[4]));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::vector<double> took;
  for (const Lane& lane : lanes) {
    if (!lane.problem.empty()) return std::fprintf(stderr, "%s\n", lane.problem.c_str()), 1;
    took.insert(took.end(), lane.took.begin(), lane.took.end());
  }
  std::sort(took.begin(), took.end());
  const auto at = [&](double share) {
    return took[static_cast<std::size_t>(share * static_cast<double>(took.size() - 1))];
  };
  std::printf("{\"per_second\": %.1f, \"p50\": %.3f, \"p99\": %.3f}\n",
              static_cast<double>(took.size()) / seconds, at(0.5), at(0.99));
}
