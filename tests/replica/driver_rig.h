// Drivers wired together by hand: the test decides when a disk, a link or a state machine moves.
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
      base = batch.reset;
      entries.clear();
    }
    if (batch.truncate_from) {
      entries.resize(static_cast<std::size_t>(*batch.truncate_from - base_index()) - 1);
    }
    entries.insert(entries.end(), batch.entries.begin(), batch.entries.end());
    if (batch.cut) {
      const auto gone = static_cast<std::ptrdiff_t>(batch.cut->id.index - base_index());
      entries.erase(entries.begin(), entries.begin() + gone);
      base = batch.cut;
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
  void apply(std::vector<raft::Entry> entries) override {
    effect("apply");
    applies_.push_back(std::move(entries));
  }
  void install(const raft::SnapshotId& id) override {
    effect("install");
    applies_.emplace_back(id);
  }
  void on_event(const raft::Event& event) override { events_.push_back(event); }

  DriverOptions options_;
  Disk disk_;
  LeaseView view_;
  Callers callers_;
  RecordingMachine machine_;
  SnapshotScript snapshots_{machine_};
  std::vector<Sent> sent_;
  std::deque<raft::PersistBatch> writes_;
  std::vector<storage::ReadRequest> reads_;
  std::size_t reads_finished_ = 0;
  std::deque<std::variant<std::vector<raft::Entry>, raft::SnapshotId>> applies_;
  std::vector<raft::Event> events_;
  std::unique_ptr<Driver> driver_;
};

inline raft::Peer peer_of(raft::NodeId id) {
  return {id, raft::Uuid{id.value(), id.value()}};
}

/// Nodes 1 .. size, all voters.
inline raft::Membership members(std::uint64_t size) {
  raft::Membership membership;
  for (std::uint64_t id = 1; id <= size; ++id) {
    membership.members.push_back(
        {raft::NodeId(id), raft::Uuid{id, id}, "127.0.0.1:" + std::to_string(7000 + id)});
    membership.voters.push_back(raft::NodeId(id));
  }
  return membership;
}

/// Rigs on one true clock. settle() moves disks, links and state machines until all are idle.
class Cluster {
 public:
  /// `spare` nodes more are no members: their logs are empty, and they know nobody.
  explicit Cluster(std::uint64_t size, DriverOptions options = {}, std::uint64_t spare = 0)
      : membership_(members(size)) {
    for (std::uint64_t id = 1; id <= size + spare; ++id) {
      options_.push_back(options);
      options_.back().core.group = raft::GroupId(1);
      options_.back().core.id = raft::NodeId(id);
      options_.back().core.uuid = raft::Uuid{id, id};
      options_.back().core.incarnation = raft::Incarnation(1);
      options_.back().core.seed = id;
      const raft::Membership known = id <= size ? membership_ : raft::Membership{};
      rigs_.push_back(std::make_unique<Rig>(options_.back(), known, now()));
    }
  }

  lease::Now now() const {
    return {lease::HolderInstant(true_time_), lease::PromiseInstant(true_time_)};
  }
  raft::PromiseInstant in(lease::Duration d) const { return now().promise + d; }
  Rig& node(std::uint64_t id) { return *rigs_.at(id - 1); }

  /// A new process on the same disk, with nothing applied but what was made durable.
  void restart(std::uint64_t id) {
    DriverOptions& options = options_.at(id - 1);
    options.core.incarnation = options.core.incarnation.next();
    Disk disk = node(id).disk();
    rigs_.at(id - 1) = std::make_unique<Rig>(options, membership_, now(), std::move(disk));
  }

  /// A first process on an empty disk under the number of another, which knows nobody.
  Rig& replace(std::uint64_t id, raft::Uuid uuid) {
    DriverOptions& options = options_.at(id - 1);
    options.core.uuid = uuid;
    options.core.incarnation = raft::Incarnation(1);
    rigs_.at(id - 1) = std::make_unique<Rig>(options, raft::Membership{}, now());
    return node(id);
  }

  /// Asked for each message whether it is lost.
  std::function<bool(raft::NodeId from, const Rig::Sent& sent)> lose;
  /// While it says so, what the snapshots of a node were asked for is not answered.
  std::function<bool(Rig& rig)> hold_snapshots;

  void cut(std::uint64_t id) { cut_.insert(raft::NodeId(id)); }
  void heal() { cut_.clear(); }

  void settle() {
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& rig : rigs_) {
        while (rig->writes_waiting() > 0) {
          rig->finish_writes(now(), rig->writes_waiting());
          moved = true;
        }
        while (!rig->reads().empty()) {
          rig->finish_reads(now());
          moved = true;
        }
        while (rig->applies_waiting() > 0) {
          rig->finish_apply(now());
          moved = true;
        }
        while (rig->snapshots().waiting() && !(hold_snapshots && hold_snapshots(*rig))) {
          rig->finish_snapshots(now());
          moved = true;
        }
        for (Rig::Sent& sent : rig->take_sent()) {
          moved = true;
          if (cut_.count(rig->id()) != 0 || cut_.count(sent.to) != 0) continue;
          if (lose && lose(rig->id(), sent)) continue;
          node(sent.to.value()).handle(now(), PeerMessageReceived{rig->peer(), sent.message});
        }
      }
    }
  }

  void advance(lease::Duration d) {
    const lease::Duration end = true_time_ + d;
    while (true_time_ < end) {
      true_time_ = std::min(end, true_time_ + milliseconds(5));
      for (auto& rig : rigs_) {
        if (rig->driver().next_deadline() <= now().promise) rig->handle(now(), Tick{});
      }
      settle();
    }
  }

  /// Lets time pass until `condition` holds; gives up after a simulated minute.
  bool advance_until(const std::function<bool()>& condition) {
    for (int step = 0; step < 12'000; ++step) {
      if (condition()) return true;
      advance(milliseconds(5));
    }
    return false;
  }

  /// The leader of the highest term, once there is one and it shows a lease.
  Rig& await_leader() {
    Rig* leader = nullptr;
    const bool found = advance_until([this, &leader] {
      leader = nullptr;
      for (auto& rig : rigs_) {
        if (cut_.count(rig->id()) == 0 && rig->leads() &&
            rig->driver().core().lease_end() > now().holder) {
          leader = rig.get();
        }
      }
      return leader != nullptr;
    });
    LEASEHOLD_ASSERT(found);
    return *leader;
  }

 private:
  lease::Duration true_time_{milliseconds(1000)};
  raft::Membership membership_;
  std::vector<DriverOptions> options_;
  std::vector<std::unique_ptr<Rig>> rigs_;
  std::set<raft::NodeId> cut_;
};

/// Counts the calls of one completion and keeps the last result.
template <class Value>
struct Answer {
  int calls = 0;
  Value value;
  std::function<void(Value)> completion() {
    return [this](Value given) {
      ++calls;
      value = std::move(given);
    };
  }
};

}  // namespace leasehold::replica::testing
