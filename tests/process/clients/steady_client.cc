// A good client for hostile_clients.py: one GET in each interval, even if the one before was not
// answered in time. Prints how long the answers took.
//
//   steady_client PORT KEY INTERVAL_US COUNT
//
// A request that was due while the one before it was still unanswered counts from when it was due:
// a server that stands still for 10 ms delays every request of those 10 ms, not one. A request that
// this program itself sends late, because it was woken late, counts from when it was sent.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
/// Requests before the first that counts.
constexpr int kWarmUp = 200;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
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

int connect_to(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) fail("socket");
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    fail("connect");
  }
  return fd;
}

void call(int fd, const std::string& request) {
  if (write(fd, request.data(), request.size()) != static_cast<ssize_t>(request.size())) {
    fail("write");
  }
  // "$5\r\nvalue\r\n": two lines for any value without line ends.
  char reply[4096];
  for (int lines = 0; lines < 2;) {
    const ssize_t got = read(fd, reply, sizeof(reply));
    if (got <= 0) fail("read");
    if (lines == 0 && reply[0] != '$') fail("an error instead of the value");
    lines += static_cast<int>(std::count(reply, reply + got, '\n'));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return std::fputs("steady_client PORT KEY INTERVAL_US COUNT\n", stderr), 2;
  const int fd = connect_to(std::atoi(argv[1]));
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
    call(fd, request);
    if (i >= 0) took.push_back(now() - begun);
  }
  std::sort(took.begin(), took.end());
  const auto at = [&](double share) {
    return static_cast<double>(took[static_cast<std::size_t>(share * (count - 1))]) / 1e6;
  };
  std::printf("{\"p50\": %.4f, \"p99\": %.4f, \"p999\": %.4f, \"max\": %.4f}\n", at(0.5), at(0.99),
              at(0.999), at(1));
}
