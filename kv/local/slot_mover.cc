#include <leasehold/kv/command_level.h>
#include <leasehold/kv/local/slot_mover.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace leasehold::kv {
namespace {

using SteadyClock = std::chrono::steady_clock;

std::string text_of(const std::vector<std::uint32_t>& slots) {
  if (slots.size() == 1) return fmt::format("slot {}", slots.front());
  const bool run = slots.back() - slots.front() + 1 == slots.size();
  if (run) return fmt::format("slots {}-{}", slots.front(), slots.back());
  return fmt::format("{} slots from {} to {}", slots.size(), slots.front(), slots.back());
}

}  // namespace

/// A group of this process, with its calls waited for.
class SlotMover::Side final : public MovingGroup {
 public:
  Side(const Replica& replica, lease::Duration timeout) : replica_(replica), timeout_(timeout) {}

  Result<Reply> execute(const Command& command) override {
    auto encoded = encode_for(command, replica_.group.lease_view().level());
    if (!encoded) return encoded.error();
    const replica::ProposeResult done =
        replica_.group.propose_and_wait(std::move(encoded).value(), timeout_);
    switch (done.status) {
      case replica::ProposeStatus::committed: return decode_reply(done.result);
      case replica::ProposeStatus::dropped:
        return Error{ErrorCode::unavailable, "the group takes no commands now"};
      case replica::ProposeStatus::unknown:
        return Error{ErrorCode::timed_out, "the group did not execute a command in time"};
    }
    return Error{ErrorCode::timed_out, "the group did not answer"};
  }
  Result<void> catch_up() override {
    const auto read = replica_.group.read_point(raft::ReadMode::quorum, timeout_);
    if (read.index) return {};
    return Error{ErrorCode::unavailable, "the group cannot be read now"};
  }
  const Store& store() const override { return replica_.store; }
  Result<std::optional<lease::Duration>> time_left(grant::LeaseId id) override {
    const auto left = replica_.keeper.left(id);
    if (!left) return left.error();
    if (!left.value()) return std::optional<lease::Duration>();
    return std::optional(left.value()->left);
  }

 private:
  const Replica replica_;
  const lease::Duration timeout_;
};

SlotMover::SlotMover(std::vector<Replica> replicas, Options options)
    : replicas_(std::move(replicas)), options_(std::move(options)) {
  for (const Replica& replica : replicas_) {
    sides_.push_back(std::make_unique<Side>(replica, options_.timeout));
    groups_.push_back(sides_.back().get());
    listeners_.push_back(replica.store.slots().listen([this] {
      const std::lock_guard lock(mutex_);
      news_ = true;
      woken_.notify_all();
    }));
  }
  thread_ = std::thread([this] { run(); });
}

SlotMover::~SlotMover() {
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    replicas_[i].store.slots().forget(listeners_[i]);
  }
  interrupt();
  thread_.join();
}

void SlotMover::interrupt() {
  const std::lock_guard lock(mutex_);
  ending_ = true;
  woken_.notify_all();
}

void SlotMover::run() {
  for (;;) {
    const bool again = look();
    std::unique_lock lock(mutex_);
    const lease::Duration pause = again ? options_.retry_min : options_.interval;
    woken_.wait_for(lock, pause, [this] { return news_ || ending_; });
    news_ = false;
    if (ending_) return;
  }
}

bool SlotMover::look() {
  bool failed = false;
  for (std::size_t group = 0; group < replicas_.size(); ++group) {
    // Most groups never move a slot.
    if (replicas_[group].store.slots().changes() == Slots::kNoChanges || !leads(group)) continue;
    const auto records = replicas_[group].store.slots().list();
    for (const SlotJob& job : slot_jobs(*records, group, replicas_.size())) {
      if (ending_) return false;
      failed = !work(group, job) || failed;
    }
  }
  return failed;
}

bool SlotMover::leads(std::size_t group) const {
  const node::Group& replica = replicas_[group].group;
  return replica.lease_view().look(replica.clock()).readable_index().has_value();
}

bool SlotMover::work(std::size_t group, const SlotJob& job) {
  const Which which(group, job.slots.front());
  const auto earlier = failures_.find(which);
  if (earlier != failures_.end() && SteadyClock::now() < earlier->second.not_before) return false;
  const auto begun = SteadyClock::now();
  const auto done =
      do_slot_job(groups_, group, job, [this, group] { return !ending_ && leads(group); });
  if (!done) {
    if (ending_ || done.error().code == ErrorCode::stopped) return true;
    note_failure(failures_[which], job, group, done.error());
    return false;
  }
  failures_.erase(which);
  if (job.phase == SlotPhase::copying || job.phase == SlotPhase::frozen) {
    const auto took =
        std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock::now() - begun);
    say(fmt::format("{} moved from group {} to group {}: {} keys in {} ms", text_of(job.slots),
                    group + 1, job.other, done.value(), took.count()));
  }
  return true;
}

void SlotMover::note_failure(Failures& failures, const SlotJob& job, std::size_t group,
                             const Error& error) {
  failures.pause = std::clamp(failures.pause * 2, options_.retry_min, options_.retry_max);
  // What is nobody's is tried all the time.
  if (job.phase == SlotPhase::frozen) failures.pause = options_.retry_min;
  failures.not_before = SteadyClock::now() + failures.pause;
  if (error.message == failures.said) return;
  failures.said = error.message;
  say(fmt::format("{} cannot move from group {} to group {} yet: {}", text_of(job.slots), group + 1,
                  job.other, error.message));
}

void SlotMover::say(const std::string& text) const {
  if (options_.notice) options_.notice(text);
}

}  // namespace leasehold::kv
