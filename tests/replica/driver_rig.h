// One driver and its ports: the test decides when a disk, a link or a state machine moves.
#pragma once

#include <leasehold/base/assert.h>
#include <leasehold/replica/apply.h>
#include <leasehold/replica/driver.h>
#include <leasehold/tests/replica/snapshot_script.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::replica::testing {

using std::chrono::milliseconds;

/// What a disk holds: survives a restart of the rig.
struct Disk {
  raft::HardState hard_state;
  std::optional<raft::LogBase> base;  ///< of a log that was cut
  std::vector<raft::Entry> entries;   ///< the first stands behind the base
  Recorded machine;                   ///< what the state machine has made durable

  raft::Index base_index() const { return base ? base->id.index : raft::Index(0); }
  raft::Index last() const { return base_index() + entries.size(); }
  const raft::Entry& at(raft::Index index) const {
    return entries.at(static_cast<std::size_t>(index - base_index()) - 1);
  }
  raft::InitialState initial(const raft::Membership& membership) const {
    raft::InitialState state;
    state.hard_state = hard_state;
    if (base) state.base = base->id;
    state.base_membership = base ? base->membership : membership;
    state.last_index = last();
    state.applied = machine.last;
    for (const raft::Entry& entry : entries) {
      state.bytes += entry.payload.size();
      if (state.runs.empty() || state.runs.back().term != entry.id.term) {
        state.runs.push_back({entry.id.term, entry.id.index});
      }
    }
    return state;
  }
  void write(const raft::PersistBatch& batch) {
    if (batch.hard_state) hard_state = *batch.hard_state;
    if (batch.reset) {
      base = *batch.reset;
      entries.clear();
    }
    if (batch.truncate_from) {
      entries.resize(static_cast<std::size_t>(*batch.truncate_from - base_index()) - 1);
    }
    entries.insert(entries.end(), batch.entries.begin(), batch.entries.end());
    if (batch.cut) {
      const auto gone = static_cast<std::ptrdiff_t>(batch.cut->id.index - base_index());
      entries.erase(entries.begin(), entries.begin() + gone);
      base = *batch.cut;
    }
  }
};

/// Everything that happened at a rig's ports, in order: "lease", "send", "persist", "apply".
using Trace = std::vector<std::string>;

/// One driver and its ports. Nothing moves by itself.
class Rig : public net::Transport, public storage::Storage, public Applier, public Observer {
 public:
  struct Sent {
    raft::NodeId to;
    wire::PeerMessage message;
  };

  Rig(const DriverOptions& options, const raft::Membership& membership, lease::Now now,
      Disk disk = {})
      : options_(options), disk_(std::move(disk)), machine_(disk_.machine) {
    snapshots_.set_durable(disk_.machine);
    driver_ = std::make_unique<Driver>(
        options, disk_.initial(membership),
        Driver::Ports{*this, *this, *this, snapshots_, view_, callers_, *this}, now);
  }

  Driver& driver() { return *driver_; }
  const LeaseView& view() const { return view_; }
  /// As it stands now, with what the state machine has made durable.
  Disk disk() const {
    Disk disk = disk_;
    disk.machine = snapshots_.durable();
    return disk;
  }
  const Callers& callers() const { return callers_; }
  SnapshotScript& snapshots() { return snapshots_; }
  void finish_snapshots(lease::Now now) {
    snapshots_.finish([this, now](Event event) { handle(now, std::move(event)); });
  }
  RecordingMachine& machine() { return machine_; }
  raft::NodeId id() const { return options_.core.id; }
  raft::Peer peer() const { return {options_.core.id, options_.core.uuid}; }
  bool leads() const { return driver_->core().role() == raft::Role::leader; }

  void handle(lease::Now now, Event event) {
    driver_->handle(now, std::move(event));
    run_completions();
  }
  void run_completions() {
    for (auto& completion : driver_->take_completions()) completion();
  }

  // The disk.
  std::size_t writes_waiting() const { return writes_.size(); }
  const std::deque<raft::PersistBatch>& writes() const { return writes_; }
  const std::vector<storage::ReadRequest>& reads() const { return reads_; }
  /// Its disk does not keep up, or does again.
  void set_behind(bool behind) { behind_ = behind; }
  std::size_t reads_finished() const { return reads_finished_; }
  /// Makes the oldest `count` waiting batches durable and tells the driver of the last.
  void finish_writes(lease::Now now, std::size_t count) {
    LEASEHOLD_ASSERT(count > 0 && count <= writes_.size());
    raft::ReadyId last;
    for (std::size_t i = 0; i < count; ++i) {
      last = writes_.front().id;
      disk_.write(writes_.front());
      writes_.pop_front();
    }
    handle(now, Persisted{last});
  }
  void finish_reads(lease::Now now) {
    for (const storage::ReadRequest& request : std::exchange(reads_, {})) {
      Disk written = disk_;
      for (const raft::PersistBatch& batch : writes_) written.write(batch);
      ++reads_finished_;
      if (request.first <= written.base_index()) {
        handle(now, EntriesRead{request.token, Error{ErrorCode::not_found, "the log was cut"}});
        continue;
      }
      std::vector<raft::Entry> found;
      std::size_t bytes = 0;
      for (raft::Index i = request.first; i <= request.last; i = i.next()) {
        const raft::Entry& entry = written.at(i);
        if (!found.empty() && bytes + entry.payload.size() > request.bytes_max) break;
        bytes += entry.payload.size();
        found.push_back(entry);
      }
      handle(now, EntriesRead{request.token, std::move(found)});
    }
  }

  // The state machine.
  std::size_t applies_waiting() const { return applies_.size(); }
  /// The entries of a call.
  const std::vector<raft::Entry>& entries_of_apply(std::size_t call) const {
    return std::get<std::vector<raft::Entry>>(applies_.at(call));
  }
  void finish_apply(lease::Now now) { handle(now, apply_next()); }
  /// Runs the oldest call, callers and all. The driver has still to be told.
  Applied apply_next() {
    if (const auto* id = std::get_if<raft::SnapshotId>(&applies_.front())) {
      LEASEHOLD_ASSERT(snapshots_.complete() && snapshots_.complete()->id == *id);
      machine_.install(Recorded::from(snapshots_.complete()->data));
      snapshots_.set_durable(machine_.state());
      snapshots_.forget_complete();
      const Applied installed{id->last.index, {}};
      applies_.pop_front();
      view_.publish_applied(installed.last);
      return installed;
    }
    auto applied = apply_entries(entries_of_apply(0), id(), options_.core.incarnation, machine_);
    LEASEHOLD_ASSERT(applied.ok());
    applies_.pop_front();
    view_.publish_applied(applied.value().last);
    return complete(std::move(applied).value(), callers_);
  }

  std::vector<Sent> take_sent() { return std::exchange(sent_, {}); }
  const std::vector<Sent>& sent() const { return sent_; }
  const std::vector<raft::Event>& events() const { return events_; }
  const std::vector<lease::Duration>& rounds() const { return rounds_; }
  /// Called inside every effect, with its name.
  std::function<void(const char*)> on_effect;

 private:
  void effect(const char* name) {
    if (on_effect) on_effect(name);
  }
  void send(raft::NodeId to, wire::PeerMessage message) override {
    effect("send");
    Sent& sent = sent_.emplace_back();
    sent.to = to;
    sent.message = std::move(message);
  }
  void persist(raft::PersistBatch batch) override {
    effect("persist");
    writes_.push_back(std::move(batch));
  }
  void read(const storage::ReadRequest& request) override { reads_.push_back(request); }
  bool behind() const override { return behind_; }
  void apply(std::vector<raft::Entry> entries) override {
    effect("apply");
    applies_.push_back(std::move(entries));
  }
  void install(const raft::SnapshotId& id) override {
    effect("install");
    applies_.emplace_back(id);
  }
  void on_event(const raft::Event& event) override { events_.push_back(event); }
  void on_round(lease::Duration took) override { rounds_.push_back(took); }

  DriverOptions options_;
  Disk disk_;
  LeaseView view_;
  Callers callers_;
  RecordingMachine machine_;
  SnapshotScript snapshots_{machine_};
  std::vector<Sent> sent_;
  std::deque<raft::PersistBatch> writes_;
  std::vector<storage::ReadRequest> reads_;
  bool behind_ = false;
  std::size_t reads_finished_ = 0;
  std::deque<std::variant<std::vector<raft::Entry>, raft::SnapshotId>> applies_;
  std::vector<raft::Event> events_;
  std::vector<lease::Duration> rounds_;
  std::unique_ptr<Driver> driver_;
};

inline raft::Peer peer_of(raft::NodeId id) {
  return {id, raft::Uuid{id.value(), id.value()}};
}

}  // namespace leasehold::replica::testing
