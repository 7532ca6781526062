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
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::bench {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kSilenceMax = 10 * kSecond;

/// A request under way.
struct Pending {
  std::uint64_t due = 0;
  std::uint64_t late = 0;
  bool write = false;
  bool counts = false;  ///< due after the warm-up
  Recorder::Place place = Recorder::kNowhere;
};

struct Connection {
  Descriptor socket;
  std::string output;
  std::string input;
  std::deque<Pending> pending;
};

/// Requests that are due at even intervals and go round some of the connections.
struct Schedule {
  std::uint64_t interval = 0;
  std::uint64_t due = 0;  ///< the next one
  std::size_t first = 0;  ///< connection
  std::uint64_t sent = 0;
  bool writes = false;  ///< all of them
};

std::vector<std::string> addresses_of(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) found.push_back(word);
  return found;
}

class OpenLoop {
 public:
  explicit OpenLoop(const OpenLoopOptions& options)
      : options_(options),
        random_(options.seed),
        reply_(reply_of(workload(false), 0)),
        set_reply_(reply_of(workload(true), 0)) {}

  Result<void> connect() {
    auto done = connect_to(options_.address);
    if (!done || options_.write_rate == 0) return done;
    return connect_to(options_.write_address.empty() ? options_.address : options_.write_address);
  }

  Result<OpenLoopResult> run() {
    // Sleeps end when they should and not 50 us later.
    prctl(PR_SET_TIMERSLACK, 1);
    const std::uint64_t began = monotonic_ns();
    counted_from_ = began + options_.warmup_ms * 1'000'000;
    last_due_ = counted_from_ + options_.duration_ms * 1'000'000;
    begin_schedules(began);
    last_reply_ = began;
    while (next_due() < last_due_ || in_flight_ > 0) {
      const std::uint64_t now = monotonic_ns();
      for (Schedule& schedule : schedules_) enqueue_due(schedule, now);
      auto flushed = flush_all();
      if (!flushed) return flushed.error();
      const std::uint64_t due = next_due();
      auto read = wait_and_read(due < last_due_ ? due : now + kSecond);
      if (!read) return read.error();
      if (in_flight_ > 0 && monotonic_ns() > last_reply_ + kSilenceMax) {
        return Error{ErrorCode::timed_out, "no reply for ten seconds"};
      }
    }
    result_.elapsed_ns = monotonic_ns() - counted_from_;
    return std::move(result_);
  }

 private:
  Result<void> connect_to(const std::string& text) {
    const std::vector<std::string> addresses = addresses_of(text);
    if (addresses.empty()) return Error{ErrorCode::invalid_argument, "there is no address"};
    for (std::uint64_t i = 0; i < options_.connections; ++i) {
      auto socket = connect_tcp(addresses[i % addresses.size()]);
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

  void begin_schedules(std::uint64_t began) {
    const std::uint64_t interval =
        std::max<std::uint64_t>(1, kSecond * options_.burst / options_.rate);
    schedules_.push_back({interval, began + interval, 0, 0, false});
    std::uint64_t instants = options_.rate / options_.burst + 1;
    if (options_.write_rate > 0) {
      const std::uint64_t apart = std::max<std::uint64_t>(1, kSecond / options_.write_rate);
      // Between two of the others, so that neither makes the other late.
      const std::uint64_t first = began + apart - std::min(apart, interval) / 2;
      schedules_.push_back({apart, first, options_.connections, 0, true});
      instants += options_.write_rate;
    }
    spin_ = std::min(options_.spin_us * 1000, kSecond / 2 / instants);
  }

  std::uint64_t next_due() const {
    std::uint64_t due = schedules_.front().due;
    for (const Schedule& schedule : schedules_) due = std::min(due, schedule.due);
    return due;
  }

  void enqueue_due(Schedule& schedule, std::uint64_t now) {
    for (; schedule.due < last_due_ && schedule.due <= now; schedule.due += schedule.interval) {
      const std::size_t at = schedule.first + schedule.sent++ % options_.connections;
      const std::uint64_t burst = schedule.writes ? 1 : options_.burst;
      for (std::uint64_t i = 0; i < burst; ++i) {
        enqueue(connections_[at], schedule.due, schedule.writes);
      }
    }
  }

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

  void enqueue(Connection& connection, std::uint64_t due, bool only_writes) {
    const bool counts = due >= counted_from_;
    if (in_flight_ >= options_.in_flight_max) {
      if (counts) ++result_.overflows;
      return;
    }
    const bool write = only_writes || random_.below(100) < options_.writes_percent;
    const std::uint64_t key = next_key();
    std::string request = request_of(workload(write), key);
    const auto place = begin_record(options_.recorder, workload(write), key, request);
    connection.output += request;
    const bool is_set = write || options_.workload.operation == Operation::set;
    const std::uint64_t late = monotonic_ns() - due;
    connection.pending.push_back({due, late, is_set, counts, place});
    ++in_flight_;
    if (counts) result_.late.record(late);
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
    polled_.clear();
    for (const Connection& connection : connections_) {
      const int events = connection.output.empty() ? POLLIN : POLLIN | POLLOUT;
      polled_.push_back({connection.socket.get(), static_cast<short>(events), 0});
    }
    const std::uint64_t now = monotonic_ns();
    const std::uint64_t wait = until > now + spin_ ? until - spin_ - now : 0;
    const timespec timeout = {static_cast<time_t>(wait / kSecond),
                              static_cast<long>(wait % kSecond)};
    if (ppoll(polled_.data(), polled_.size(), &timeout, nullptr) < 0 && errno != EINTR) {
      return system_error("poll");
    }
    for (std::size_t i = 0; i < polled_.size(); ++i) {
      if ((polled_[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
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
    if (request.place != Recorder::kNowhere) {
      record_reply(*options_.recorder, request.place,
                   request.write ? Operation::set : Operation::get, reply, last_reply_);
    }
    if (!request.counts) return;
    const std::uint64_t wait = last_reply_ - request.due;
    (request.write ? result_.writes : result_.reads).record(wait);
    if (options_.list_waits) {
      result_.waits.push_back({request.due, request.late, wait, request.write});
    }
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
  std::vector<Schedule> schedules_;  ///< that of `rate`, then that of `write_rate`
  std::vector<pollfd> polled_;
  std::uint64_t spin_ = 0;
  std::uint64_t next_lease_ = 0;
  std::uint64_t in_flight_ = 0;
  std::uint64_t counted_from_ = 0;
  std::uint64_t last_due_ = 0;
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
