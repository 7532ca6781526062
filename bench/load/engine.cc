#include <leasehold/bench/load/engine.h>

#include <leasehold/bench/workload.h>

#include <fmt/format.h>

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace leasehold::bench {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;
/// How often the user is asked, and the connections are looked after.
constexpr std::uint64_t kLookNs = kSecondNs / 50;
/// At the end, how long is waited for what is under way.
constexpr std::uint64_t kDrainNs = 2 * kSecondNs;
constexpr unsigned kRedirectionsMax = 5;
constexpr std::size_t kErrorKindsMax = 100;
/// Digits at the front of a value, by which each differs.
constexpr std::size_t kNumberDigits = 16;

std::uint64_t thread_cpu_ns() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<std::uint64_t>(used.tv_sec) * kSecondNs +
         static_cast<std::uint64_t>(used.tv_nsec);
}

std::string filler_of(std::size_t bytes, std::uint64_t seed) {
  // Nothing that a disk or a network could compress by much.
  Random random(seed);
  std::string text(bytes, 'x');
  for (char& letter : text) letter = static_cast<char>('0' + random.below(64));
  return text;
}

}  // namespace

std::uint64_t Measured::operations() const {
  return std::accumulate(latencies.begin(), latencies.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Histogram& one) { return sum + one.count(); });
}

std::uint64_t Measured::error_count() const {
  return std::accumulate(errors.begin(), errors.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& one) { return sum + one.second; });
}

Histogram Measured::all() const {
  Histogram all;
  for (const Histogram& one : latencies) all.merge(one);
  return all;
}

void Measured::merge(const Measured& other) {
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if (other.latencies[kind].count() > 0) latencies[kind].merge(other.latencies[kind]);
  }
  late.merge(other.late);
  for (const auto& [kind, count] : other.errors) errors[kind] += count;
}

void Measured::clear() {
  for (Histogram& one : latencies) {
    if (one.count() > 0) one.clear();
  }
  if (late.count() > 0) late.clear();
  errors.clear();
}

Engine::Engine(Links& links, const LoadOptions& options, Hooks& hooks)
    : links_(links),
      options_(options),
      hooks_(hooks),
      filler_(filler_of(options.value_bytes, options.seed)) {
  links_.set_listener(*this);
}

void Engine::begin(const Phase& phase) {
  // Sleeps end when they should and not 50 us later.
  prctl(PR_SET_TIMERSLACK, 1);
  phase_ = &phase;
  result_ = PhaseResult();
  second_.clear();
  source_over_ = false;
  ended_ = false;
  seconds_ = 0;
  scheduled_ = 0;
  began_ = monotonic_ns();
  counted_from_ = began_ + phase.warm_up_ns;
  ends_ = phase.duration_ns == 0 ? ~std::uint64_t{0} : counted_from_ + phase.duration_ns;
  second_began_ = counted_from_;
  free_.clear();
  if (phase.rate > 0) {
    interval_ns_ = static_cast<double>(kSecondNs) / static_cast<double>(phase.rate);
    next_due_ = began_;
  } else {
    for (std::uint64_t i = 0; i < phase.in_flight; ++i) {
      free_.push_back(static_cast<std::size_t>(i % links_.size()));
    }
  }
  cpu_before_ = thread_cpu_ns();
}

Result<PhaseResult> Engine::run(const Phase& phase) {
  begin(phase);
  std::uint64_t next_look = began_;
  bool warm = phase.warm_up_ns == 0;
  for (;;) {
    std::uint64_t now = monotonic_ns();
    if (now >= next_look) {
      next_look = now + kLookNs;
      links_.look_after(now);
      ended_ = ended_ || (hooks_.ended && hooks_.ended());
    }
    if (!warm && now >= counted_from_) {
      warm = true;
      cpu_before_ = thread_cpu_ns();
    }
    const bool done = source_over_ && links_.in_flight() == 0 && redirected_.empty();
    if (now >= ends_ || ended_ || done) break;
    if (now >= second_began_ + kSecondNs && now >= counted_from_) pass_second(now, false);
    if (auto turned = turn(std::min(next_look, ends_)); !turned) return turned.error();
  }
  // The last second may be a short one. What is answered behind it still counts: it was due before.
  const std::uint64_t over = monotonic_ns();
  result_.ended_early = ended_;
  result_.elapsed_ns = over > counted_from_ ? over - counted_from_ : 0;
  result_.cpu_ns = warm ? thread_cpu_ns() - cpu_before_ : 0;
  source_over_ = true;
  free_.clear();
  while (links_.in_flight() + redirected_.size() > 0 && monotonic_ns() < over + kDrainNs) {
    if (!redirected_.empty()) send_redirected(monotonic_ns());
    links_.flush();
    if (auto waited = links_.wait(monotonic_ns() + kLookNs); !waited) return waited.error();
    links_.look_after(monotonic_ns());
  }
  const std::size_t left = links_.in_flight() + std::exchange(redirected_, {}).size();
  if (left > 0) {
    second_.errors["no reply at the end"] += left;
  }
  pass_second(over, true);
  phase_ = nullptr;
  return std::move(result_);
}

Result<void> Engine::turn(std::uint64_t until) {
  const std::uint64_t now = monotonic_ns();
  if (!redirected_.empty()) send_redirected(now);
  if (phase_->rate > 0) {
    issue_due(now);
    until = std::min(until, next_due_);
  } else {
    issue_free(now);
  }
  links_.flush();
  return links_.wait(until);
}

void Engine::issue_due(std::uint64_t now) {
  while (next_due_ <= now && next_due_ < ends_) {
    const std::uint64_t due = next_due_;
    const bool counts = due >= counted_from_;
    ++scheduled_;
    next_due_ = began_ + static_cast<std::uint64_t>(static_cast<double>(scheduled_) * interval_ns_);
    if (links_.in_flight() >= phase_->in_flight) {
      if (counts) note_error("overflow");
      continue;
    }
    if (!issue(due, static_cast<std::size_t>(scheduled_ % links_.size())) && counts) {
      note_error("not connected");
    }
  }
}

void Engine::issue_free(std::uint64_t now) {
  while (!free_.empty() && !source_over_) {
    const std::size_t hint = free_.back();
    if (!issue(now, hint)) return;
    free_.pop_back();
  }
}

/// False: there is no connection. Nothing was drawn from the source then.
bool Engine::issue(std::uint64_t due, std::size_t hint) {
  if (!links_.choose("", hint)) return false;
  const auto operation = phase_->next();
  if (!operation) {
    source_over_ = true;
    return true;
  }
  const auto link = links_.choose(key_name(operation->key), hint);
  Ticket ticket;
  ticket.operation = *operation;
  ticket.due = due;
  ticket.counts = due >= counted_from_;
  ticket.sent = monotonic_ns();
  if (ticket.counts && phase_->rate > 0) second_.late.record(ticket.sent - due);
  request(*link, ticket);
  return true;
}

std::string_view Engine::value_with(std::string_view front) {
  value_.assign(front);
  value_.append(filler_, front.size(), std::string::npos);
  return value_;
}

/// Each value differs by the number at its front.
std::string_view Engine::next_value() {
  std::array<char, 2 * kNumberDigits> digits;
  const auto end = fmt::format_to(digits.data(), "{:0{}}", writes_++, kNumberDigits);
  return value_with({digits.data(), static_cast<std::size_t>(end - digits.data())});
}

void Engine::request(std::size_t link, Ticket ticket) {
  const LoadOperation& operation = ticket.operation;
  const OperationKind kind = operation.kind;
  Request request;
  request.key = operation.key;
  request.count = operation.count;
  Recorder* const recorder = hooks_.recorder;
  const bool judged = recorder != nullptr && recorder->judges(operation.key);
  // Sent again, it is another operation: the first try was certainly not executed.
  ticket.recorded = Recorder::kNowhere;
  if (kind == OperationKind::scan) {
    request.kind = OperationKind::scan;
  } else if (kind != OperationKind::read && (kind != OperationKind::modify || ticket.second)) {
    request.kind = OperationKind::update;
    if (judged) {
      const Recorder::Front front = recorder->next_front();
      request.value = value_with({front.data(), front.size()});
      ticket.recorded = recorder->begin_write(link, operation.key, front, ticket.sent);
    } else {
      request.value = next_value();
    }
  } else if (judged) {
    ticket.recorded = recorder->begin_read(link, operation.key, ticket.sent);
  }
  links_.send(link, request, std::move(ticket));
}

void Engine::record_answer(const Ticket& ticket, const ReplyView& reply, std::uint64_t now) {
  const OperationKind kind = ticket.operation.kind;
  Recorder& recorder = *hooks_.recorder;
  if (reply.kind == ReplyView::Kind::error) {
    recorder.failed(ticket.recorded, reply.text);
  } else if (kind != OperationKind::read && (kind != OperationKind::modify || ticket.second)) {
    recorder.wrote(ticket.recorded, now);
  } else if (reply.kind == ReplyView::Kind::null) {
    recorder.read_nothing(ticket.recorded, now);
  } else {
    recorder.read(ticket.recorded, reply.text, now);
  }
}

void Engine::answered(std::size_t link, const Ticket& ticket, const ReplyView& reply,
                      std::uint64_t now) {
  if (ticket.recorded != Recorder::kNowhere) record_answer(ticket, reply, now);
  if (reply.kind == ReplyView::Kind::error) {
    const std::string word(error_word(reply.text));
    const bool again =
        word == "MOVED" && ticket.redirections < kRedirectionsMax && links_.redirect(reply.text);
    if (!again) return fail(ticket, word);
    ++result_.redirections;
    Ticket next = ticket;
    ++next.redirections;
    next.sent = now;
    redirected_.push_back(next);
    return send_redirected(now);
  }
  const OperationKind kind = ticket.operation.kind;
  const bool reads =
      kind == OperationKind::read || (kind == OperationKind::modify && !ticket.second);
  if (reads && reply.kind == ReplyView::Kind::null) return fail(ticket, "missing key");
  if (kind == OperationKind::modify && !ticket.second) {
    Ticket next = ticket;
    next.second = true;
    next.sent = now;
    return request(link, next);
  }
  if (ticket.counts) second_.latencies[static_cast<std::size_t>(kind)].record(now - ticket.due);
  end_operation(link);
}

/// To the server that was named, as soon as there is a connection to it.
void Engine::send_redirected(std::uint64_t now) {
  for (Ticket& ticket : std::exchange(redirected_, {})) {
    const auto link = links_.choose_owner(key_name(ticket.operation.key), 0);
    if (link) {
      request(*link, ticket);
    } else if (now > ticket.sent + kDrainNs) {
      fail(ticket, "not connected");
    } else {
      redirected_.push_back(ticket);
    }
  }
}

void Engine::lost(const Ticket& ticket, const std::string& why) {
  fail(ticket, why);
}

void Engine::not_opened(const Error& error) {
  note_error("cannot connect");
  static_cast<void>(error);
}

void Engine::fail(const Ticket& ticket, const std::string& kind) {
  if (ticket.counts) note_error(kind);
  if (hooks_.failed) hooks_.failed(ticket.operation);
  end_operation(links_.size());
}

/// In the closed loop the next one may begin, on the same connection if there was one.
void Engine::end_operation(std::size_t link) {
  if (phase_ == nullptr || phase_->rate > 0 || source_over_) return;
  free_.push_back(link < links_.size() ? link : free_.size() % links_.size());
}

void Engine::note_error(const std::string& kind) {
  const bool known = second_.errors.count(kind) > 0 || second_.errors.size() < kErrorKindsMax;
  ++second_.errors[known ? kind : "other"];
}

void Engine::pass_second(std::uint64_t now, bool last) {
  const double length_s =
      now > second_began_ ? static_cast<double>(now - second_began_) / 1e9 : 0.0;
  if (hooks_.passed && (length_s > 0.001 || last)) {
    hooks_.passed(second_, seconds_, length_s, links_.in_flight());
  }
  result_.total.merge(second_);
  second_.clear();
  second_began_ = now;
  ++seconds_;
}

}  // namespace leasehold::bench
