// The parts of a Driver, and the order in which they act. Not an interface for users.
#pragma once

#include <leasehold/base/assert.h>
#include <leasehold/replica/append_filler.h>
#include <leasehold/replica/apply_queue.h>
#include <leasehold/replica/driver.h>
#include <leasehold/replica/driver_context.h>
#include <leasehold/replica/entry_cache.h>
#include <leasehold/replica/group_calls.h>
#include <leasehold/replica/log_keeper.h>
#include <leasehold/replica/log_reads.h>
#include <leasehold/replica/progress_watch.h>
#include <leasehold/replica/proposals.h>
#include <leasehold/replica/reads.h>
#include <leasehold/replica/snapshot_receiver.h>
#include <leasehold/replica/snapshot_sender.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::replica {

/// The loop itself. Every input goes to the core or to the waiters; then drain() acts on the
/// core's effects, in the order that raft/ready.h gives, until there are none.
class Driver::Impl {
 public:
  Impl(const DriverOptions& options, raft::InitialState initial, const Ports& ports, lease::Now now)
      : applied_at_start_(initial.applied),
        log_bytes_at_start_(initial.bytes),
        context_(options, std::move(initial), ports, now),
        cache_(options.cache_bytes_max),
        filler_(context_, cache_),
        apply_(context_, cache_, applied_at_start_),
        sender_(context_),
        receiver_(context_),
        keeper_(context_, now, log_bytes_at_start_, applied_at_start_),
        log_reads_(context_, cache_),
        proposals_(context_),
        reads_(context_),
        group_calls_(context_),
        machine_watch_(options.apply_patience) {
    context_.applied = applied_at_start_;
    ports.view.publish_applied(applied_at_start_);
    note_drift();
    drain(now);
  }

  void handle(lease::Now now, Event& event) {
    begin(now);
    feed(now, event);
    finish(now);
  }

  void handle_batch(lease::Now now, std::vector<Event>& events) {
    begin(now);
    for (Event& event : events) feed(now, event);
    events.clear();
    finish(now);
  }

  raft::PromiseInstant next_deadline() const {
    if (stopped_) return raft::PromiseInstant::never();
    raft::PromiseInstant next = std::min(context_.core.next_deadline(), retry_at_);
    next = std::min(next, sender_.next_deadline());
    next = std::min(next, proposals_.next_resend());
    next = std::min(next, proposals_.next_deadline());
    if (!machine_stalled_) next = std::min(next, machine_watch_.deadline());
    if (!context_.deadlines.empty()) next = std::min(next, context_.deadlines.earliest().at);
    return next;
  }

  DriverContext& context() { return context_; }
  std::size_t pending() const { return proposals_.size() + reads_.size() + group_calls_.size(); }
  ProposalPlaces proposals() const { return proposals_.places(); }
  /// With the end of a call the core of a stalled machine may lead again: it has no other timer.
  bool awaits_applied() const {
    return reads_.size() > 0 || proposals_.awaits_applied() || apply_.behind() || machine_stalled_;
  }
  const std::optional<Error>& failure() const { return failure_; }
  std::vector<raft::Release> take_releases() { return std::exchange(releases_, {}); }
  void give_back() {
    context_.core.give_back();
    ready_.reset();
    const raft::Index last = context_.core.log().last_index();
    if (context_.core.durable_index() == last && apply_.handed() == last) cache_.give_back();
    if (held_.empty()) held_.shrink_to_fit();
    if (releases_.empty()) releases_.shrink_to_fit();
  }
  const LogKeeper& keeper() const { return keeper_; }
  std::vector<SnapshotTransfer> transfers() const {
    std::vector<SnapshotTransfer> all;
    sender_.status(all);
    receiver_.status(all);
    return all;
  }

 private:
  struct Hands;

  void begin(lease::Now now) {
    LEASEHOLD_ASSERT(!inside_);
    inside_ = true;
    context_.turn_began = now.holder;
    if (context_.tap != nullptr) begin_tapped(now);
  }
  void begin_tapped(lease::Now now) {
    if (!context_.tap->begin(now, context_.core, context_.applied)) context_.tap.reset();
  }
  void finish(lease::Now now);
  void feed(lease::Now now, Event& event);
  raft::NodeId full_member() const;

  void on(lease::Now, Tick&) {}
  void on(lease::Now now, PeerMessageReceived& event);
  void on(lease::Now now, Propose& event) { proposals_.propose(now, event); }
  void on(lease::Now now, Read& event);
  void on(lease::Now now, WaitApplied& event) { reads_.wait_applied(now, event); }
  void on(lease::Now, CutLog& event) { keeper_.demanded(event); }
  void on(lease::Now now, ReadLog& event) { log_reads_.read(now, event); }
  void on(lease::Now now, ChangeMembers& event) { group_calls_.change(now, event); }
  void on(lease::Now now, ChangeSettings& event) { group_calls_.change_settings(now, event); }
  void on(lease::Now now, TransferLeadership& event) {
    group_calls_.transfer_leadership(now, event);
  }
  void on(lease::Now, Cancel& event);
  void on(lease::Now now, Persisted& event);
  void on(lease::Now now, EntriesRead& event);
  void on(lease::Now now, Applied& event);
  void on(lease::Now, MachineDurable& event);
  void on(lease::Now now, SnapshotTaken& event) { sender_.taken(now, event); }
  void on(lease::Now now, SnapshotRead& event) { sender_.read(now, event); }
  void on(lease::Now now, ChunkStored& event) { receiver_.stored(now, event); }
  void on(lease::Now now, PeerEnded& event) { context_.core.ended(now, event.peer); }
  void on(lease::Now now, GroupReleased& event) {
    if (context_.tap != nullptr) context_.tap->released();
    context_.core.released(now, event.holder, event.term);
  }
  void on(lease::Now now, PromisesMoved&) { context_.core.promises_moved(now); }
  void on(lease::Now, MayCampaign&) {}  // finish() asks
  void on(lease::Now, SupportsRemembered&) {}
  void on(lease::Now, StorageSpace& event) { space(log_full_, event.full); }
  void on(lease::Now, MachineSpace& event) { space(machine_full_, event.full); }
  void on(lease::Now, StorageFailed& event) { fail(std::move(event.error)); }
  void on(lease::Now, Stop&) { stop(); }

  void space(bool& of, bool full) {
    of = full;
    context_.disk_full = log_full_ || machine_full_;
  }
  void step(lease::Now now, const raft::Peer& from, raft::Message& message);
  void make_heartbeat(raft::AppendRequest& request) const;

  /// The larger of what this machine's clock is worth and what the group allows.
  void note_drift() const {
    const std::int64_t own = context_.core.options().timing.max_clock_drift_ppm;
    const std::int64_t agreed = context_.core.timing().max_clock_drift_ppm;
    context_.ports.view.fresh_since().set_drift_ppm(std::max(own, agreed));
  }
  void drain(lease::Now now);
  bool watch_machine(lease::Now now);
  void publish_level();
  void act(lease::Now now);
  void write(lease::Now now, raft::PersistBatch& batch,
             const std::vector<raft::AppendIntent>& intents);
  void release_held();
  void note_leadership(lease::Now now);
  void note_round(lease::Now now);
  void route_held(lease::Now now);
  void expire(lease::Now now);
  bool still_waits(const Deadlines::Entry& entry) const;
  std::optional<raft::Index> holds(lease::Now now) const;
  void fail(Error error);
  void stop();

  raft::Index applied_at_start_;
  std::uint64_t log_bytes_at_start_;
  DriverContext context_;
  EntryCache cache_;
  AppendFiller filler_;
  ApplyQueue apply_;
  SnapshotSender sender_;
  SnapshotReceiver receiver_;
  LogKeeper keeper_;
  LogReads log_reads_;
  Proposals proposals_;
  Reads reads_;
  GroupCalls group_calls_;

  /// Null while the group rests: made by the first turn that needs it.
  std::unique_ptr<raft::Ready> ready_;
  std::vector<raft::Release> releases_;
  ProgressWatch machine_watch_;
  bool machine_stalled_ = false;  ///< as the core knows it
  /// Batches up to this one are durable.
  raft::ReadyId durable_;
  /// Messages that wait for a batch, in the order in which the core gave them.
  std::vector<raft::HeldMessage> held_;

  // What was last known of the leadership, to see it change.
  raft::Term term_;
  raft::NodeId leader_;
  bool leads_ = false;
  std::optional<lease::HolderInstant> round_;  ///< the newest one that was noted
  /// When what a known leader refused is tried again; never() when nothing is.
  raft::PromiseInstant retry_at_ = raft::PromiseInstant::never();

  bool log_full_ = false;
  bool machine_full_ = false;
  bool inside_ = false;
  bool stopped_ = false;
  std::optional<Error> failure_;
};

}  // namespace leasehold::replica
