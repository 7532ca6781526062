#include <leasehold/server/trace_recorder.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::server {
namespace {

using story::Kind;
using story::Record;

/// Edges of windows beyond this say never.
constexpr lease::Duration kEdgeMax = std::chrono::hours(1000);
/// The two clocks differ by more than this later on: the machine has slept.
constexpr lease::Duration kSleepMin = std::chrono::milliseconds(1);

std::string ids_text(const std::vector<raft::NodeId>& ids) {
  std::string text;
  for (const raft::NodeId id : ids) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", id.value());
  }
  return text;
}

std::string members_text(const raft::Membership& membership) {
  std::string text = "voters " + ids_text(membership.voters);
  if (!membership.outgoing_voters.empty())
    text += " outgoing " + ids_text(membership.outgoing_voters);
  std::vector<raft::NodeId> learners;
  for (const raft::Member& member : membership.members) {
    if (!membership.is_voter(member.id)) learners.push_back(member.id);
  }
  return learners.empty() ? text : text + " learners " + ids_text(learners);
}

}  // namespace

story::Duration TraceRecorder::OwnTime::of(raft::HolderInstant local) const {
  if (local == raft::HolderInstant::never()) return now.holder.since_origin() + kEdgeMax;
  if (local == raft::HolderInstant::earliest()) return story::Duration(0);
  return now.holder.since_origin() + std::clamp(local - now.holder, -kEdgeMax, kEdgeMax);
}

story::Duration TraceRecorder::OwnTime::of(raft::PromiseInstant local) const {
  if (local == raft::PromiseInstant::never()) return now.holder.since_origin() + kEdgeMax;
  if (local == raft::PromiseInstant::earliest()) return story::Duration(0);
  return now.holder.since_origin() + std::clamp(local - now.promise, -kEdgeMax, kEdgeMax);
}

TraceRecorder::TraceRecorder(raft::NodeId node, raft::Incarnation process,
                             lease::HolderInstant begin, lease::Duration span)
    : node_(node),
      process_(process),
      until_(begin + span),
      watch_(node, [this](const Record& record) { add(record); }),
      asked_(begin) {}

// ---- Who asked for it ----

TraceRecorder::Taken TraceRecorder::take(std::size_t most, lease::HolderInstant now) {
  const std::lock_guard lock(mutex_);
  over_locked(now);
  asked_ = now;
  Taken taken;
  const std::size_t count = std::min(most, waiting_.size());
  taken.records.assign(std::make_move_iterator(waiting_.begin()),
                       std::make_move_iterator(waiting_.begin() + static_cast<long>(count)));
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<long>(count));
  taken.more = !waiting_.empty();
  taken.dropped = dropped_;
  taken.ended = ended_;
  return taken;
}

void TraceRecorder::stop() {
  const std::lock_guard lock(mutex_);
  if (ended_.empty()) ended_ = "stopped";
}

bool TraceRecorder::over(lease::HolderInstant now) {
  const std::lock_guard lock(mutex_);
  return over_locked(now);
}

bool TraceRecorder::over_locked(lease::HolderInstant now) {
  if (!ended_.empty()) return true;
  if (now >= until_) {
    ended_ = "whole";
  } else if (now - asked_ > kUnaskedMax) {
    ended_ = "stopped";
    waiting_.clear();
    waiting_.shrink_to_fit();
  }
  return !ended_.empty();
}

void TraceRecorder::add(const Record& record) {
  const std::lock_guard lock(mutex_);
  if (!ended_.empty()) return;
  if (waiting_.size() >= kWaitingMax) {
    if (gap_++ == 0) gap_at_ = record.at;
    ++dropped_;
    return;
  }
  if (gap_ > 0) {
    Record gap;
    gap.at = gap_at_;
    gap.kind = Kind::mark;
    gap.node = node_;
    gap.what = "gap";
    gap.number = std::exchange(gap_, 0);
    gap.text = "records from here on were dropped: they came faster than they were taken";
    waiting_.push_back(std::move(gap));
  }
  waiting_.push_back(record);
}

// ---- What passes ----

Record TraceRecorder::record(Kind kind) const {
  Record record;
  record.at = at();
  record.kind = kind;
  record.node = node_;
  return record;
}

void TraceRecorder::tell_mark(const char* what, raft::Index index, std::string text) {
  Record mark = record(Kind::mark);
  mark.what = what;
  mark.index = index;
  mark.text = std::move(text);
  add(mark);
}

bool TraceRecorder::begin(lease::Now now, const raft::Core& core, raft::Index applied) {
  if (over(now.holder)) return false;
  if (fresh_) {
    time_.now = now;
    tell_state(core);
  } else {
    tell_sleep(now);
    time_.now = now;
  }
  if (applied != std::exchange(applied_, applied)) tell_mark("applied", applied, "");
  fresh_ = false;
  return true;
}

/// What holds at the beginning.
void TraceRecorder::tell_state(const raft::Core& core) {
  Record role = record(Kind::role);
  role.term = core.term();
  role.what = story::role_name(core.role());
  role.why = "recorded";
  role.number = process_.value();
  add(role);
  if (core.leader() != raft::kNobody && core.leader() != node_) {
    Record leader = record(Kind::leader);
    leader.term = core.term();
    leader.peer = core.leader();
    add(leader);
  }
  raft::GroupSettings settings;
  if (core.membership().settings) settings = *core.membership().settings;
  settings.timing = core.timing();
  raft::Event event{core.options().group, node_, core.term(), time_.now, {}};
  event.what = raft::SettingsChanged{core.log().membership_index(), settings};
  if (auto told = story::record_of(at(), event)) {
    told->what = "present";
    add(*told);
  }
  Record members = record(Kind::members);
  members.term = core.term();
  members.index = core.log().membership_index();
  members.what = "present";
  members.text = members_text(core.membership());
  add(members);
  Record commit = record(Kind::commit);
  commit.term = core.term();
  commit.index = core.commit_index();
  add(commit);
  watch_.started(at(), core, time_);
}

/// The holder's clock counts the sleep of a machine, and the promise clock does not.
void TraceRecorder::tell_sleep(lease::Now now) {
  const lease::Duration slept = (now.holder - time_.now.holder) - (now.promise - time_.now.promise);
  if (slept < kSleepMin) return;
  time_.now = now;
  tell_mark("slept", raft::Index(0),
            fmt::format("the machine slept for {}: promises end that much later",
                        story::format_time(slept)));
}

void TraceRecorder::message(Kind kind, raft::NodeId peer, const wire::Payload& message) {
  if (const auto* raft = std::get_if<raft::Message>(&message)) {
    if (kind == Kind::sent) watch_.sent(at(), *raft);
    add(story::record_of(at(), kind, node_, peer, *raft));
    return;
  }
  Record told = record(kind);
  told.peer = peer;
  if (const auto* request = std::get_if<wire::ForwardRequest>(&message)) {
    told.what = "forward";
    told.term = request->term;
    told.text =
        fmt::format("command {} of process {}", request->sequence, request->incarnation.value());
  } else if (const auto* reply = std::get_if<wire::ForwardReply>(&message)) {
    told.what = "forward_reply";
    told.why = "refused";
    told.text =
        fmt::format("command {} of process {}", reply->sequence, reply->incarnation.value());
  } else {
    return;
  }
  add(told);
}

void TraceRecorder::received(const raft::Peer& from, const wire::Payload& message) {
  this->message(Kind::delivered, from.id, message);
}

void TraceRecorder::released() {
  watch_.release_arrives();
}

void TraceRecorder::turned(const raft::Core& core) {
  watch_.observe(at(), core, time_);
  const raft::Index durable = core.durable_index();
  if (durable != std::exchange(durable_, durable)) tell_mark("durable", durable, "");
}

void TraceRecorder::sent(raft::NodeId to, const wire::Payload& message) {
  this->message(Kind::sent, to, message);
}

void TraceRecorder::event(const raft::Event& event) {
  if (auto told = story::record_of(at(), event)) {
    told->node = node_;
    told->at = at();
    add(*told);
  }
}

void TraceRecorder::stopped(const std::optional<Error>& failure) {
  if (failure) {
    Record fail = record(Kind::fail);
    if (failure->code == ErrorCode::clock_disrupted) fail.why = "clock_disrupted";
    add(fail);
  } else {
    tell_mark("stops", raft::Index(0), "the replica stops, as it was asked to");
  }
}

}  // namespace leasehold::server
