// What a replica finds in its folder, and how its driver and what works for it begin.
#include <leasehold/base/assert.h>
#include <leasehold/node/node_group.h>
#include <leasehold/node/random_word.h>

#include <fmt/format.h>

#include <utility>

namespace leasehold::node {
namespace {

/// Under load the next append carries the news of a commit, which saves a quarter of the messages
/// of each write. A follower that waits for a commit still hears of it at once (Core::listens).
constexpr lease::Duration kCommitNewsDelay = std::chrono::milliseconds(5);

/// An earlier version believed every term and index that a peer named.
Result<void> check_reachable(const std::string& data_dir, const raft::InitialState& state) {
  if (state.hard_state.term <= raft::kTermMax && state.last_index <= raft::kIndexMax) return {};
  return Error{
      ErrorCode::corrupted,
      fmt::format("{}: the log is in term {} and ends at entry {}, which no group can have "
                  "reached: an earlier version stored what a faulty or hostile peer "
                  "claimed. Remove this node from the group, and add it again with an "
                  "empty directory; if most members say this, restore a new group from a "
                  "backup (leasehold restore)",
                  data_dir, state.hard_state.term.value(), state.last_index.value())};
}

}  // namespace

Result<void> GroupShell::prepare(GroupGround ground) {
  ground_ = std::move(ground);
  if (witness_) ground_.machine = &witness_machine_;
  const storage::GroupLog& log = *ground_.log;
  if (!log.formed()) make_formation();
  members_ = std::make_unique<Members>(
      Members::Self{replica_, ground_.self.uuid, ground_.address, witness_}, *ground_.links,
      [this](replica::Event event) {
        batch_.push_back(std::move(event));
        loop_.schedule(*this);
      },
      [this](const std::string& text) { observer_.on_notice(text); });
  if (log.formed()) return prepare_driver();
  return check_new_log(data_dir_, ground_.restored, ground_.machine->durable_index());
}

/// Unless the replica joins, or joined.
void GroupShell::make_formation() {
  const storage::GroupLog& log = *ground_.log;
  if (log.joined()) return;
  raft::GroupSettings proposed;
  proposed.timing = timing_;
  formation_ = std::make_unique<Formation>(
      replica_, ground_.self.uuid,
      InitialSet{log.formed() ? log.confirmed_set() : ground_.members, proposed},
      InitialSet{log.confirmed_set(), log.confirmed_settings()}, log.formed(),
      ground_.places != nullptr ? Formation::Manner::asks : Formation::Manner::tells);
}

void GroupShell::begin() {
  ground_.log->start(*this);
  if (ground_.log->formed()) start_driver();
}

/// Leaves in ground_.initial what the driver begins with.
Result<void> GroupShell::prepare_driver() {
  if (!ground_.initial) {
    ground_.initial = std::make_unique<raft::InitialState>(ground_.log->take_initial_state());
  }
  raft::InitialState& initial = *ground_.initial;
  if (witness_) {
    witness_machine_.begin_at(initial.base.index);
  } else if (ground_.machine->durable_index() < initial.base.index) {
    const auto done = GroupSnapshots::install_at_start(data_dir_, initial.base, *ground_.machine);
    if (!done.ok()) return done;
  }
  initial.applied = ground_.machine->durable_index();
  if (initial.applied > initial.last_index) {
    return Error{ErrorCode::corrupted,
                 fmt::format("{}: the state machine has applied entry {}, but the log ends at {}: "
                             "they do not belong together, or the log lost entries. Restore both "
                             "from one backup, or remove this node from the group and add it again",
                             data_dir_, initial.applied.value(), initial.last_index.value())};
  }
  return check_reachable(data_dir_, initial);
}

void GroupShell::start_driver() {
  LEASEHOLD_ASSERT(ground_.initial);
  raft::InitialState initial = std::move(*ground_.initial);
  ground_.initial.reset();
  if (ground_.places != nullptr) {
    ground_.places->learn(initial.base_membership);
    for (const raft::MembershipAt& later : initial.memberships) {
      ground_.places->learn(later.membership);
    }
  }
  replica::DriverOptions options;
  static_cast<replica::Limits&>(options) = *std::exchange(limits_, nullptr);
  options.core.group = id();
  options.core.id = replica_;
  options.core.uuid = ground_.self.uuid;
  options.core.incarnation = ground_.self.incarnation;
  options.core.timing = timing_;
  options.core.witness = witness_;
  options.core.seed = random_word();
  options.core.commit_news_delay = kCommitNewsDelay;
  options.core.shared = ground_.shared;
  start_work();
  driver_ = std::make_unique<replica::Driver>(
      options, std::move(initial),
      replica::Driver::Ports{*ground_.transport, *ground_.log, *applier_, *snapshots_, view_,
                             callers_, observer_},
      loop_.now());
  driver_->tap(std::exchange(tap_, nullptr));
  ground_.members = std::vector<raft::Member>();  // the log has them
  if (machine_full_) batch_.emplace_back(replica::MachineSpace{true});
  if (log_full_) batch_.emplace_back(replica::StorageSpace{true});
  members_->look(driver_->core(), loop_.now());
  loop_.began(*this);
}

void GroupShell::start_work() {
  snapshots_ = std::make_unique<GroupSnapshots>(
      loop_.snapshots(), *ground_.machine, data_dir_, ground_.cluster_id,
      ground_.machine->durable_index(), [this](replica::Event event) { post(std::move(event)); });
  applier_ = std::make_unique<GroupApplier>(
      loop_.appliers(), *ground_.machine, view_, callers_, replica_, ground_.self.incarnation,
      [this](const raft::SnapshotId& id) { return install(id); },
      [this](Result<replica::Applied> applied) {
        if (applied.ok()) {
          post(std::move(applied).value(), Mailbox::Haste::when_awaited);
        } else {
          post(replica::StorageFailed{applied.error()});
        }
      });
}

/// Thread of the applier.
Result<void> GroupShell::install(const raft::SnapshotId& id) {
  if (witness_) {
    witness_machine_.begin_at(id.last.index);
    return {};
  }
  const auto staged = GroupSnapshots::complete(data_dir_);
  if (!staged.ok()) return staged.error();
  LEASEHOLD_ASSERT(staged.value()->id() == id);
  const Result<void> done = ground_.machine->install_snapshot(*staged.value());
  if (done.ok()) snapshots_->installed();
  return done;
}

}  // namespace leasehold::node
