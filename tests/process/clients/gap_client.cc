// Readers and writers that never stop, for planned_transfers.py: what did each request meet?
//
//   gap_client PORT,PORT,... READ_US WRITE_US REGISTERS
//
// One reader and one writer for each node, each on a thread and a connection of its own. Each makes
// a request every READ_US or WRITE_US; while one is unanswered it makes no other, and those that
// were due meanwhile are left out. A request that is refused as not executed, and a read whose
// connection breaks, goes to the next node at once, and lasts until it is answered there; so does a
// request whose connection has ended before it is sent. A client whose node is back returns to it.
//
// Ends when its input does, and then prints a line for each request:
//
//   KIND NODE SENT_NS DONE_NS OUTCOME REFUSALS REGISTER VALUE [WHY]
//
// KIND r or w; NODE the client's own, from 1; times of CLOCK_MONOTONIC; OUTCOME ok or unknown (of a
// write that may be executed); REFUSALS how many nodes did not take it first; WHY what the first
// of them said, or why the outcome is unknown.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
/// A node answers within its own limit, 5 s, or it is broken.
constexpr int kReplySeconds = 8;
/// Pause between two checks whether the own node is back: longer after each request that it does
/// not take, since a node that waits to be added, or was removed, may take none for a long time.
constexpr std::int64_t kReturnPause = kSecond / 20;
constexpr std::int64_t kReturnPauseMax = kSecond * 2;
/// When no node takes a request.
constexpr std::int64_t kRoundPause = 1'000'000;

std::int64_t now() {
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * kSecond + at.tv_nsec;
}

void sleep_until(std::int64_t instant) {
  const timespec at{instant / kSecond, instant % kSecond};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
}

/// One connection, or none.
class Connection {
 public:
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { close(); }

  bool open(int port) {
    close();
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const timeval patience{kReplySeconds, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      return true;
    }
    close();
    return false;
  }
  bool is_open() const { return fd_ >= 0; }
  /// The node has closed the connection between two requests: a request that is sent now would not
  /// be executed, and its client could not know that.
  bool ended() const {
    char byte = 0;
    return fd_ >= 0 && recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    input_.clear();
  }

  /// The reply without its frame: "+OK", "-ERR ...", "$" and the value, "_" for none. None: the
  /// connection broke.
  std::optional<std::string> call(const std::string& request) {
    if (send(fd_, request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size())) {
      close();
      return std::nullopt;
    }
    auto head = line();
    if (!head || (*head)[0] != '$') return head;
    if (*head == "$-1") return "_";
    auto value = line();
    if (value) value->insert(0, "$");
    return value;
  }

 private:
  std::optional<std::string> line() {
    std::size_t end = 0;
    while ((end = input_.find("\r\n")) == std::string::npos) {
      char piece[4096];
      const ssize_t got = recv(fd_, piece, sizeof(piece), 0);
      if (got <= 0) {
        close();
        return std::nullopt;
      }
      input_.append(piece, static_cast<std::size_t>(got));
    }
    std::string out = input_.substr(0, end);
    input_.erase(0, end + 2);
    return out.empty() ? std::nullopt : std::optional<std::string>(std::move(out));
  }

  int fd_ = -1;
  std::string input_;
};

struct Request {
  std::int64_t sent;
  std::int64_t done;
  int refusals;
  bool unknown;
  int reg;
  std::uint64_t value;
  std::string why;
};

class Client {
 public:
  Client(const std::vector<int>& ports, std::size_t own, bool writes, std::int64_t interval,
         int registers)
      : ports_(ports), own_(own), writes_(writes), interval_(interval), registers_(registers) {}

  void run(const std::atomic<bool>& stop) {
    prctl(PR_SET_TIMERSLACK, 1UL);
    std::int64_t due = now();
    for (std::uint64_t number = 1; !stop; ++number) {
      due = std::max(due + interval_, now());
      sleep_until(due);
      const int reg = static_cast<int>(random() % static_cast<std::uint64_t>(registers_));
      // Never twice by anybody.
      const std::uint64_t value = (number * ports_.size() + own_) + 1;
      requests_.push_back({now(), 0, 0, false, reg, writes_ ? value : 0, {}});
      make(requests_.back(), stop);
    }
  }

  void print() const {
    for (const Request& request : requests_) {
      if (request.done == 0) continue;  // cut off by the end
      std::printf("%c %zu %lld %lld %s %d %d %llu %s\n", writes_ ? 'w' : 'r', own_ + 1,
                  static_cast<long long>(request.sent), static_cast<long long>(request.done),
                  request.unknown ? "unknown" : "ok", request.refusals, request.reg,
                  static_cast<unsigned long long>(request.value), request.why.c_str());
    }
  }

 private:
  std::uint64_t random() {
    random_ ^= random_ << 13U;
    random_ ^= random_ >> 7U;
    return random_ ^= random_ << 17U;
  }

  /// Connects to the own node if it is back, or else to the next node that runs.
  void connect_somewhere() {
    if (connection_.ended()) go_on();
    if (at_ != own_ && now() >= next_return_) {
      next_return_ = now() + kReturnPause;
      if (connection_.open(ports_[own_])) at_ = own_;
    }
    for (std::size_t tries = 0; !connection_.is_open(); ++tries) {
      if (tries > 0 && tries % ports_.size() == 0) sleep_until(now() + kRoundPause);
      if (tries > 0) at_ = (at_ + 1) % ports_.size();
      connection_.open(ports_[at_]);
      if (tries > 10000) std::fputs("no node is there\n", stderr), std::exit(1);
    }
  }
  void go_on() {
    connection_.close();
    if (at_ == own_) {
      next_return_ = now() + return_pause_;
      return_pause_ = std::min(2 * return_pause_, kReturnPauseMax);
    }
    at_ = (at_ + 1) % ports_.size();
  }

  void make(Request& request, const std::atomic<bool>& stop) {
    const std::string key = "register:" + std::to_string(request.reg);
    const std::string words = writes_ ? "SET " + key + " " + std::to_string(request.value) + "\r\n"
                                      : "GET " + key + "\r\n";
    for (;;) {
      connect_somewhere();
      const auto reply = connection_.call(words);
      const bool broken = !reply;
      const bool not_executed =
          reply && (reply->rfind("-TRYAGAIN", 0) == 0 || reply->rfind("-NOLEADER", 0) == 0);
      if (not_executed || (broken && !writes_)) {
        if (request.refusals++ == 0) request.why = reply.value_or("the connection broke");
        if (request.refusals % static_cast<int>(ports_.size()) == 0) {
          sleep_until(now() + kRoundPause);
        }
        go_on();
        if (stop) return;
        continue;
      }
      request.unknown = broken || reply->rfind("-UNKNOWNOUTCOME", 0) == 0;
      if (request.unknown && request.refusals == 0) {
        request.why = reply.value_or("the connection broke");
      }
      if (broken) go_on();
      if (reply && (*reply)[0] == '-' && !request.unknown) {
        std::fprintf(stderr, "%s: %s\n", words.c_str(), reply->c_str());
        std::exit(1);
      }
      if (!writes_ && (*reply)[0] == '$') {
        request.value = std::strtoull(reply->c_str() + 1, nullptr, 10);
      }
      request.done = now();
      if (at_ == own_) return_pause_ = kReturnPause;
      return;
    }
  }

  const std::vector<int> ports_;
  const std::size_t own_;
  const bool writes_;
  const std::int64_t interval_;
  const int registers_;
  Connection connection_;
  std::size_t at_ = own_;
  std::int64_t next_return_ = 0;
  std::int64_t return_pause_ = kReturnPause;
  std::uint64_t random_ = 88172645463325252ULL + own_;
  std::vector<Request> requests_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    return std::fputs("gap_client PORT,PORT,... READ_US WRITE_US REGISTERS\n", stderr), 2;
  }
  std::vector<int> ports;
  for (const char* at = argv[1]; *at != '\0';) {
    char* end = nullptr;
    ports.push_back(static_cast<int>(std::strtol(at, &end, 10)));
    at = *end == ',' ? end + 1 : end;
  }
  std::deque<Client> clients;
  for (std::size_t own = 0; own < ports.size(); ++own) {
    for (const bool writes : {false, true}) {
      const std::int64_t interval = std::atoll(argv[writes ? 3 : 2]) * 1000;
      clients.emplace_back(ports, own, writes, interval, std::atoi(argv[4]));
    }
  }
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (Client& client : clients) threads.emplace_back([&client, &stop] { client.run(stop); });
  for (char ignored = 0; read(STDIN_FILENO, &ignored, 1) > 0;) {
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (const Client& client : clients) client.print();
  return 0;
}
