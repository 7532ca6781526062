// One replica of a side group: another group that a simulated process runs beside the one that is
// judged in full.
#pragma once

#include <leasehold/base/assert.h>
#include <leasehold/net/transport.h>
#include <leasehold/replica/callers.h>
#include <leasehold/replica/driver.h>
#include <leasehold/replica/process_driver.h>
#include <leasehold/replica/state_machine.h>
#include <leasehold/sim/world/sim_disk.h>
#include <leasehold/sim/world/world.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::sim {

/// Keeps the newest command that it was given, and nothing of those before.
class NewestCommand final : public replica::StateMachine {
 public:
  raft::Index durable_index() const override { return applied_; }
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands,
                           raft::Index last) override;
  Result<raft::Index> make_durable() override { return applied_; }
  std::string_view newest() const { return newest_; }

 private:
  raft::Index applied_;
  std::string newest_;
};

/// What it needs of the node that it runs on.
struct SideGroupPorts {
  std::function<void(raft::NodeId to, wire::PeerMessage message)> send;
  /// An event for its next turn.
  std::function<void(replica::Event event)> post;
  /// After each turn, and before any caller is answered.
  std::function<void()> judge;
};

/// The production Driver, on the promises of the process that it shares with the other groups. It
/// has a disk of its own, keeps all of its log, and applies it again from the first entry on after
/// each start.
///
/// It may begin later than its process, and end earlier: then its place in the group stays empty
/// until the process starts again.
class SideGroup : private net::Transport,
                  private storage::StorageSink,
                  private replica::Applier,
                  private replica::Snapshots,
                  private replica::Observer {
 public:
  SideGroup(World& world, raft::GroupId group, raft::NodeId node, raft::Membership members,
            SideGroupPorts ports);

  raft::GroupId group() const { return group_; }
  /// Null: it has not begun, has ended or failed, or the process is down.
  const raft::Core* core() const;
  /// Its storage has failed. In production that is the log of the whole process.
  bool storage_failed() const {
    return life_ && life_->driver && life_->driver->failure().has_value();
  }
  /// What a reader of its view would see now; nothing without core().
  raft::LeaseState published() const { return life_ ? life_->view.load() : raft::LeaseState(); }
  /// What readers on other threads look at. Asserts core().
  const replica::LeaseView& view() const {
    LEASEHOLD_ASSERT(core() != nullptr);
    return life_->view;
  }
  /// The newest command that was applied here, until the next one; empty: none was.
  std::string_view newest_command() const {
    return life_ ? life_->machine.newest() : std::string_view();
  }
  /// Whether it takes part when its process does.
  bool member() const { return members_.find(node_) != nullptr; }

  /// A process has started. It begins at `begins`, and ends at `ends`.
  void open(const replica::DriverOptions& options, replica::ProcessDriver& process,
            RunInProcess run, TrueInstant begins, TrueInstant ends);
  void crash();

  // In a turn of the process.

  void take(replica::Event event) { life_->batch.push_back(std::move(event)); }
  void turn(lease::Now now);
  raft::PromiseInstant next_deadline() const;

 private:
  bool due(TrueInstant when) const { return world_.queue.now() >= when && !world_.failed(); }
  void begin(lease::Now now);
  void end(lease::Now now);
  void handle(lease::Now now);
  void apply_next();
  void look_at(TrueInstant when);

  void send(raft::NodeId to, wire::PeerMessage message) override;
  void persisted(raft::ReadyId id) override { ports_.post(replica::Persisted{id}); }
  void entries_read(std::uint64_t token, Result<std::vector<raft::Entry>> entries) override {
    ports_.post(replica::EntriesRead{token, std::move(entries)});
  }
  void space(bool full) override { ports_.post(replica::StorageSpace{full}); }
  void failed(Error error) override { ports_.post(replica::StorageFailed{std::move(error)}); }
  void on_event(const raft::Event& event) override;
  void apply(std::vector<raft::Entry> entries) override;
  void make_durable() override { ports_.post(replica::MachineDurable{raft::Index(0)}); }

  // All of the log is kept: nobody needs a snapshot.
  void install(const raft::SnapshotId&) override { LEASEHOLD_ASSERT(false); }
  void take() override { LEASEHOLD_ASSERT(false); }
  void read(std::uint64_t, std::uint64_t, std::uint64_t, std::size_t) override {
    LEASEHOLD_ASSERT(false);
  }
  void release(std::uint64_t) override { LEASEHOLD_ASSERT(false); }
  void store(const raft::ReceivedChunk&) override { LEASEHOLD_ASSERT(false); }
  void discard() override { LEASEHOLD_ASSERT(false); }

  World& world_;
  const raft::GroupId group_;
  const raft::NodeId node_;
  const raft::Membership members_;
  SideGroupPorts ports_;
  Random random_;
  SimDisk disk_;

  /// What ends with the process.
  struct Life {
    replica::DriverOptions options;
    replica::ProcessDriver& process;
    RunInProcess run;
    TrueInstant begins;
    TrueInstant ends;
    NewestCommand machine{};
    replica::Callers callers{};
    replica::LeaseView view{};
    std::deque<std::vector<raft::Entry>> applies{};
    std::vector<replica::Event> batch{};
    std::unique_ptr<replica::Driver> driver{};
  };
  std::unique_ptr<Life> life_;
};

}  // namespace leasehold::sim
