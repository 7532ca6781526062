#include <leasehold/kv/local/slot_jobs.h>
#include <leasehold/kv/local/slot_mover.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

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

SlotMover::SlotMover(std::vector<std::unique_ptr<LedGroup>> groups, Options options)
    : groups_(std::move(groups)),
      options_(std::move(options)),
      agenda_({options_.retry_min, options_.retry_max, options_.interval}) {
  for (const auto& group : groups_) {
    moving_.push_back(group.get());
    listeners_.push_back(group->store().slots().listen([this] {
      const std::lock_guard lock(mutex_);
      news_ = true;
      woken_.notify_all();
    }));
  }
  thread_ = std::thread([this] { run(); });
}

SlotMover::~SlotMover() {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    groups_[i]->store().slots().forget(listeners_[i]);
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
  while (!ending_) {
    end_finished();
    begin_tasks();
    const auto now = SteadyClock::now();
    const auto until = std::min(agenda_.next(now).value_or(SteadyClock::time_point::max()),
                                now + options_.interval);
    std::unique_lock lock(mutex_);
    woken_.wait_until(lock, until, [this] { return news_ || ending_ || !finished_.empty(); });
    news_ = false;
  }
  for (Work& work : works_) work.thread.join();
}

/// What ends from here on stays in hand until the next look, so what was found before is not begun
/// once more.
void SlotMover::end_finished() {
  std::vector<Works::iterator> finished;
  {
    const std::lock_guard lock(mutex_);
    finished.swap(finished_);
  }
  for (const Works::iterator at : finished) {
    at->thread.join();
    end(*at);
    works_.erase(at);
  }
}

void SlotMover::begin_tasks() {
  for (SlotTask& task : agenda_.begin(find(), SteadyClock::now())) start(std::move(task));
}

std::vector<SlotTask> SlotMover::find() const {
  std::vector<SlotTask> found;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    const Slots& slots = groups_[group]->store().slots();
    // Most groups never move a slot.
    if (slots.changes() == Slots::kNoChanges || !groups_[group]->leads()) continue;
    for (SlotJob& job : slot_jobs(*slots.list(), group, groups_.size())) {
      found.push_back({group, std::move(job)});
    }
  }
  return found;
}

void SlotMover::start(SlotTask task) {
  const auto at = works_.emplace(works_.end());
  at->task = std::move(task);
  at->begun = SteadyClock::now();
  try {
    at->thread = std::thread([this, at] { work(at); });
  } catch (const std::system_error& error) {
    at->done = Error{ErrorCode::overloaded, fmt::format("there is no thread: {}", error.what())};
    end(*at);
    works_.erase(at);
  }
}

void SlotMover::work(Works::iterator at) {
  const std::size_t group = at->task.group;
  const SlotJob& job = at->task.job;
  const bool frozen = job.phase == SlotPhase::frozen;
  // What has left is dropped here, without the other group.
  const bool asks = options_.away && job.phase != SlotPhase::left;
  const auto away = asks ? options_.away(group, job.other - 1, frozen) : std::string();
  if (away.empty()) {
    at->done = do_slot_job(moving_, group, job,
                           [this, group] { return !ending_ && groups_[group]->leads(); });
  } else {
    at->done = Error{ErrorCode::unavailable, away};
  }
  const std::lock_guard lock(mutex_);
  finished_.push_back(at);
  woken_.notify_all();
}

void SlotMover::end(Work& work) {
  const auto now = SteadyClock::now();
  const SlotJob& job = work.task.job;
  const bool news = agenda_.end(work.task, work.done, now);
  const auto to = fmt::format("from group {} to group {}", work.task.group + 1, job.other);
  if (!work.done) {
    if (!news || ending_) return;
    return say(fmt::format("{} cannot move {} yet: {}", text_of(job.slots), to,
                           work.done.error().message));
  }
  if (job.phase != SlotPhase::copying && job.phase != SlotPhase::frozen) return;
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(now - work.begun);
  say(fmt::format("{} moved {}: {} keys in {} ms", text_of(job.slots), to, work.done.value(),
                  took.count()));
}

void SlotMover::say(const std::string& text) const {
  if (options_.notice) options_.notice(text);
}

}  // namespace leasehold::kv
