#include <leasehold/bench/open_loop.h>

#include <leasehold/bench/socket.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <utility>
#include <vector>

namespace leasehold::bench {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kSilenceMax = 10 * kSecond;

/// A request under way.
struct Pending {
  std::uint64_t due = 0;
  bool write = false;
  bool counts = false;  ///< due after the warm-up
};

struct Connection {
  Descriptor socket;
  std::string output;
  std::string input;
  std::deque<Pending> pending;
};

class OpenLoop {
 public:
  explicit OpenLoop(const OpenLoopOptions& options)
      : options_(options),
        random_(options.seed),
        reply_(reply_of(workload(false), 0)),
        set_reply_(reply_of(workload(true), 0)) {}

  Result<void> connect() {
    for (std::uint64_t i = 0; i < options_.connections; ++i) {
      auto socket = connect_tcp(options_.address);
      if (!socket) return socket.error();
      if (!options_.setup.empty()) {
        auto done = simple_command(socket.value(), options_.setup);
        if (!done) return done;
      }
      if (fcntl(socket.value().get(), F_SETFL, O_NONBLOCK) != 0) return system_error("fcntl");
      connections_.emplace_back();
      connections_.back().socket = std::move(socket).value();
    }
    return {};
  }

  Result<OpenLoopResult> run() {
    // Sleeps end when they should and not 50 us later.
    prctl(PR_SET_TIMERSLACK, 1);
    const std::uint64_t interval =
        std::max<std::uint64_t>(1, kSecond * options_.burst / options_.rate);
    const std::uint64_t began = monotonic_ns();
    counted_from_ = began + options_.warmup_ms * 1'000'000;
    const std::uint64_t last_due = counted_from_ + options_.duration_ms * 1'000'000;
    std::uint64_t due = began + interval;
    last_reply_ = began;
    while (due < last_due || in_flight_ > 0) {
      const std::uint64_t now = monotonic_ns();
      for (; due < last_due && due <= now; due += interval) {
        Connection& connection = connections_[next_++ % connections_.size()];
        for (std::uint64_t i = 0; i < options_.burst; ++i) enqueue(connection, due);
      }
      auto flushed = flush_all();
      if (!flushed) return flushed.error();
      auto read = wait_and_read(due < last_due ? due : now + kSecond);
      if (!read) return read.error();
      if (in_flight_ > 0 && monotonic_ns() > last_reply_ + kSilenceMax) {
        return Error{ErrorCode::timed_out, "no reply for ten seconds"};
      }
    }
    result_.elapsed_ns = monotonic_ns() - counted_from_;
    return std::move(result_);
  }

 private:
  Workload workload(bool write) const {
    Workload chosen = options_.workload;
    if (write) chosen.operation = Operation::set;
    return chosen;
  }

  static Result<void> simple_command(const Descriptor& socket, const std::string& words) {
    auto sent = write_all(socket, command_of(words));
    if (!sent) return sent;
    std::string ahead;
    auto reply = read_reply(socket, 5, ahead);
    if (!reply) return reply.error();
    if (reply.value()[0] != '-') return {};
    return Error{ErrorCode::invalid_argument,
                 fmt::format("`{}` was answered {}", words, reply.value())};
  }

  std::uint64_t next_key() {
    if (options_.workload.operation != Operation::renew) {
      return random_.below(options_.workload.keys);
    }
    const std::uint64_t lease = next_lease_;
    next_lease_ = (next_lease_ + options_.workload.ids) % options_.workload.keys;
    return lease;
  }

  void enqueue(Connection& connection, std::uint64_t due) {
    const bool counts = due >= counted_from_;
    if (in_flight_ >= options_.in_flight_max) {
      if (counts) ++result_.overflows;
      return;
    }
    const bool write = random_.below(100) < options_.writes_percent;
    connection.output += request_of(workload(write), next_key());
    const bool is_set = write || options_.workload.operation == Operation::set;
    connection.pending.push_back({due, is_set, counts});
    ++in_flight_;
    if (counts) result_.late.record(monotonic_ns() - due);
  }

  Result<void> flush_all() {
    for (Connection& connection : connections_) {
      while (!connection.output.empty()) {
        const ssize_t sent = send(connection.socket.get(), connection.output.data(),
                                  connection.output.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) break;
        if (sent < 0 && errno != EINTR) return system_error("send");
        if (sent > 0) connection.output.erase(0, static_cast<std::size_t>(sent));
      }
    }
    return {};
  }

  Result<void> wait_and_read(std::uint64_t until) {
    std::vector<pollfd> polled;
    for (const Connection& connection : connections_) {
      const int events = connection.output.empty() ? POLLIN : POLLIN | POLLOUT;
      polled.push_back({connection.socket.get(), static_cast<short>(events), 0});
    }
    const std::uint64_t now = monotonic_ns();
    const std::uint64_t wait = until > now ? until - now : 0;
    const timespec timeout = {static_cast<time_t>(wait / kSecond),
                              static_cast<long>(wait % kSecond)};
    if (ppoll(polled.data(), polled.size(), &timeout, nullptr) < 0 && errno != EINTR) {
      return system_error("poll");
    }
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if ((polled[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      auto read = read_replies(connections_[i]);
      if (!read) return read;
    }
    return {};
  }

  Result<void> read_replies(Connection& connection) {
    std::array<char, 64U << 10U> chunk;
    auto got = read_some(connection.socket, chunk.data(), chunk.size());
    if (!got) return got.error();
    connection.input.append(chunk.data(), got.value());
    std::size_t position = 0;
    while (!connection.pending.empty()) {
      const Pending& front = connection.pending.front();
      const std::string_view rest = std::string_view(connection.input).substr(position);
      const std::size_t length =
          reply_length(rest, front.write ? set_reply_.size() : reply_.size());
      if (length == 0) break;
      finish(front, rest.substr(0, length));
      position += length;
      connection.pending.pop_front();
    }
    connection.input.erase(0, position);
    return {};
  }

  void finish(const Pending& request, std::string_view reply) {
    --in_flight_;
    last_reply_ = monotonic_ns();
    if (!request.counts) return;
    (request.write ? result_.writes : result_.reads).record(last_reply_ - request.due);
    // A floor answers with a constant; only the kind of its reply can be checked.
    const std::string& expected = request.write ? set_reply_ : reply_;
    if (reply.size() != expected.size() || reply[0] != expected[0]) {
      if (result_.failures++ == 0) result_.first_failure = std::string(reply);
    }
  }

  const OpenLoopOptions& options_;
  Random random_;
  std::string reply_;      ///< to a read or a renewal
  std::string set_reply_;  ///< to a write
  std::vector<Connection> connections_;
  std::uint64_t next_ = 0;  ///< connection
  std::uint64_t next_lease_ = 0;
  std::uint64_t in_flight_ = 0;
  std::uint64_t counted_from_ = 0;
  std::uint64_t last_reply_ = 0;
  OpenLoopResult result_;
};

}  // namespace

std::string discard_reason(const Histogram& latency, const Histogram& late) {
  if (latency.count() == 0) return "nothing was measured";
  for (const auto& [q, name] : {std::pair(0.5, "p50"), std::pair(0.99, "p99")}) {
    const std::uint64_t own = late.quantile(q);
    const std::uint64_t whole = latency.quantile(q);
    if (static_cast<double>(own) <= kLateShareMax * static_cast<double>(whole)) continue;
    return fmt::format("at {} the client itself was {:.1f} us late of {:.1f} us", name,
                       static_cast<double>(own) / 1000, static_cast<double>(whole) / 1000);
  }
  return "";
}

std::string discard_reason(const OpenLoopResult& result) {
  std::string reason;
  if (result.reads.count() > 0 || result.writes.count() == 0) {
    reason = discard_reason(result.reads, result.late);
  }
  if (reason.empty() && result.writes.count() > 0) {
    reason = discard_reason(result.writes, result.late);
  }
  return reason;
}

Result<OpenLoopResult> open_loop(const OpenLoopOptions& options) {
  if (options.rate == 0 || options.burst == 0 || options.connections == 0 ||
      options.workload.keys == 0) {
    return Error{ErrorCode::invalid_argument, "rate, burst, connections and keys must be above 0"};
  }
  OpenLoop loop(options);
  auto connected = loop.connect();
  if (!connected) return connected.error();
  return loop.run();
}

}  // namespace leasehold::bench
