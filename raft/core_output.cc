// What leaves a core: effects collect in pending_, take_ready() hands them out.

#include <leasehold/base/assert.h>
#include <leasehold/raft/core_impl.h>

#include <algorithm>
#include <utility>

namespace leasehold::raft {
namespace {

// `to` is empty. Member by member, and only what there is: most turns have one effect or two. The
// vectors change places, so that both keep their memory.
void hand_out(Ready& from, Ready& to) {
  const auto vector = [](auto& source, auto& target) {
    if (!source.empty()) source.swap(target);
  };
  const auto optional = [](auto& source, auto& target) {
    if (source) source.swap(target);
  };
  optional(from.lease, to.lease);
  optional(from.release, to.release);
  vector(from.messages, to.messages);
  vector(from.intents, to.intents);
  vector(from.snapshots, to.snapshots);
  optional(from.persist.hard_state, to.persist.hard_state);
  optional(from.persist.reset, to.persist.reset);
  optional(from.persist.truncate_from, to.persist.truncate_from);
  vector(from.persist.entries, to.persist.entries);
  optional(from.persist.cut, to.persist.cut);
  vector(from.held, to.held);
  vector(from.chunks, to.chunks);
  optional(from.install, to.install);
  std::swap(from.apply_to, to.apply_to);
  std::swap(from.commit, to.commit);
  vector(from.reads, to.reads);
  vector(from.events, to.events);
}

}  // namespace

void Core::Impl::send_now(NodeId to, Message&& message) {
  LEASEHOLD_ASSERT(to != kNobody);
  LEASEHOLD_ASSERT(to != options_.id);
  // In its place at once: a message is large, and a second move of each one is seen.
  OutgoingMessage& out = pending_.messages.emplace_back();
  out.to = to;
  out.message = std::move(message);
}

// etcd's queue keeps such messages back for the same reason: a vote, a promise or a match that is
// sent before it is durable can be forgotten in a crash and then given to another node.
void Core::Impl::send_after(ReadyId after, NodeId to, Message&& message) {
  LEASEHOLD_ASSERT(after <= next_ready_);  // the batch that the next Ready holds, at the latest
  LEASEHOLD_ASSERT(to != options_.id);
  if (after <= durable_batch_) {
    send_now(to, std::move(message));
  } else {
    HeldMessage& held = pending_.held.emplace_back();
    held.after = after;
    held.to = to;
    held.message = std::move(message);
  }
}

void Core::Impl::emit(decltype(Event::what) what) {
  pending_.events.push_back({options_.group, options_.id, hard_state_.term, now_, std::move(what)});
}

// After a call that handed out everything, only an input brings more, or a class: the process moves
// it, and no input says so.
bool Core::Impl::take_ready(Ready& ready) {
  if (ready.id != ReadyId()) ready.clear();
  if (!std::exchange(input_came_, false) && options_.shared == nullptr) return false;
  if (Leader* leader = as_leader()) {
    // One round serves everything that arrived in this turn. While one is out the next one waits
    // for its quorum (or for the heartbeat), so that reads cannot flood the peers.
    if (leader->wants_round()) {
      begin_round();
      leader->due.reads = true;
      derive();
      check_invariants();
    }
    emit_intents();
  }

  // Before the term's first commit there is no lease to read under.
  const Leader* leads = as_leader();
  const Index sent_commit =
      leads != nullptr && commit_ >= leads->first_index ? leads->sent_commit : commit_;
  const LeaseState lease{hard_state_.term, lease_end(), commit_, sent_commit, lease_class()};
  LEASEHOLD_ASSERT(lease.sent_commit >= published_.sent_commit &&
                   lease.sent_commit <= lease.commit);
  if (lease != published_) {
    if (lease.end > now_.holder && end_of(published_) <= now_.holder) emit(LeaseGained{lease.end});
    published_ = lease;
    pending_.lease = lease;
  }
  if (commit_ > announced_commit_) pending_.commit = announced_commit_ = commit_;
  // Only what is durable here is applied: the state machine never runs ahead of the own log.
  // Entries that a snapshot replaced are gone from the log and are not applied.
  const Index apply_to = std::min(commit_, durable_);
  if (apply_to > announced_apply_ && !resetting()) {
    pending_.apply_to = announced_apply_ = apply_to;
  }

  const bool anything = pending_.lease || pending_.release || !pending_.messages.empty() ||
                        !pending_.intents.empty() || !pending_.snapshots.empty() ||
                        !pending_.persist.empty() || !pending_.held.empty() ||
                        !pending_.chunks.empty() || pending_.install ||
                        pending_.apply_to.value() != 0 || pending_.commit.value() != 0 ||
                        !pending_.reads.empty() || !pending_.events.empty();
  if (!anything) return false;

  const ReadyId id = next_ready_;
  next_ready_ = next_ready_.next();
  if (!pending_.persist.empty()) {
    if (pending_.persist.hard_state) hard_state_batch_ = id;
    Index last = pending_.persist.reset ? pending_.persist.reset->id.index : Index();
    if (!pending_.persist.entries.empty()) last = pending_.persist.entries.back().id.index;
    unanswered_.push_back({id, last, now_.promise, received_});
    received_.reset();
    handed_out_ = log_.last_index();
  }
  LEASEHOLD_ASSERT(announced_apply_ <= commit_);
  LEASEHOLD_ASSERT(announced_commit_ == commit_);
  hand_out(pending_, ready);
  ready.id = id;
  ready.persist.id = id;
  LEASEHOLD_ASSERT(!received_.has_value());
  LEASEHOLD_ASSERT(handed_out_ <= log_.last_index());
  return true;
}

}  // namespace leasehold::raft
