// A good client for hostile_clients.py: one GET in each interval, even if the one before was not
// answered in time. Prints how long the answers took.
//
//   steady_client PORT KEY INTERVAL_US COUNT [CA]
//
// CA is the PEM file of the server's authority: then the connection is by TLS.
//
// A request that was due while the one before it was still unanswered counts from when it was due:
// a server that stands still for 10 ms delays every request of those 10 ms, not one. A request that
// this program itself sends late, because it was woken late, counts from when it was sent.
#include <leasehold/bench/socket.h>
#include <leasehold/tls/context.h>

#include <sys/prctl.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace {

using leasehold::Result;
using leasehold::bench::Descriptor;

constexpr std::int64_t kSecond = 1'000'000'000;
/// Requests before the first that counts.
constexpr int kWarmUp = 200;

[[noreturn]] void fail(const std::string& problem) {
  std::fprintf(stderr, "steady_client: %s\n", problem.c_str());
  std::exit(1);
}

void expect(const Result<void>& done) {
  if (!done) fail(done.error().message);
}

std::int64_t now() {
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * kSecond + at.tv_nsec;
}

void sleep_until(std::int64_t instant) {
  const timespec at{instant / kSecond, instant % kSecond};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
}

Descriptor connect_to(const std::string& port, const char* authority) {
  auto socket = leasehold::bench::connect_tcp("127.0.0.1:" + port);
  if (!socket) fail(socket.error().message);
  if (authority != nullptr) {
    auto context = leasehold::tls::Context::be_client({"", "", authority, ""});
    if (!context) fail(context.error().message);
    expect(socket.value().begin_tls(context.value()));
  }
  return std::move(socket).value();
}

void call(const Descriptor& socket, const std::string& request) {
  expect(write_all(socket, request));
  // "$5\r\nvalue\r\n": two lines for any value without line ends.
  char reply[4096];
  for (std::ptrdiff_t lines = 0; lines < 2;) {
    const auto got = read_some(socket, reply, sizeof(reply));
    if (!got) fail(got.error().message);
    if (lines == 0 && reply[0] != '$') fail("an error instead of the value");
    lines += std::count(reply, reply + got.value(), '\n');
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) {
    return std::fputs("steady_client PORT KEY INTERVAL_US COUNT [CA]\n", stderr), 2;
  }
  const Descriptor socket = connect_to(argv[1], argc == 6 ? argv[5] : nullptr);
  const std::string request = "GET " + std::string(argv[2]) + "\r\n";
  const std::int64_t interval = std::atoll(argv[3]) * 1000;
  const int count = std::atoi(argv[4]);
  prctl(PR_SET_TIMERSLACK, 1UL);
  std::vector<std::int64_t> took;
  took.reserve(static_cast<std::size_t>(count));
  std::int64_t due = now();
  for (int i = -kWarmUp; i < count; ++i) {
    due += interval;
    std::int64_t begun = due;
    if (now() < due) {
      sleep_until(due);
      begun = now();
    }
    call(socket, request);
    if (i >= 0) took.push_back(now() - begun);
  }
  std::sort(took.begin(), took.end());
  const auto at = [&](double share) {
    return static_cast<double>(took[static_cast<std::size_t>(share * (count - 1))]) / 1e6;
  };
  std::printf("{\"p50\": %.4f, \"p99\": %.4f, \"p999\": %.4f, \"max\": %.4f}\n", at(0.5), at(0.99),
              at(0.999), at(1));
}
