#include <leasehold/sim/judge/snapshot_oracle.h>
#include <leasehold/sim/judge/words.h>

#include <fmt/format.h>

#include <optional>

namespace leasehold::sim {

void SnapshotOracle::check_base(const SimNode& node, const raft::LogBase& base) {
  const std::optional<StagedSnapshot>& staged = node.staged();
  const bool arrived = staged && staged->complete && staged->id.last == base.id;
  if (!node.witness() && node.machine().durable_index() < base.id.index && !arrived) {
    world_.fail(
        "cut_beyond_durable",
        fmt::format("{}'s log begins behind {}, but its state machine is durable only up to {}",
                    name(node), id_text(base.id), node.machine().durable_index().value()));
  }
  if (!ledger_.is_committed(base.id)) {
    world_.fail("log_matching", fmt::format("{}'s log begins behind {}, which is not committed",
                                            name(node), id_text(base.id)));
  }
}

void SnapshotOracle::on_snapshot_taken(const SimNode& node, std::uint64_t tag,
                                       const SnapshotBytes& snapshot) {
  taken_.emplace(tag, snapshot);
  if (snapshot.last() > ledger_.last()) {
    world_.fail("snapshot_state", name(node) + " takes a snapshot of what is not committed");
    return;
  }
  const auto state = RegisterMachine::decode(snapshot.bytes().view());
  if (!state || !(*state == ledger_.state_at(snapshot.last()))) {
    world_.fail("snapshot_state",
                fmt::format("{} takes a snapshot up to {} that is not what was committed",
                            name(node), snapshot.last().value()));
  }
}

void SnapshotOracle::on_snapshot_arrived(const SimNode& node, const StagedSnapshot& snapshot) {
  const auto taken = taken_.find(snapshot.id.tag);
  const char* wrong = nullptr;
  if (taken == taken_.end() || taken->second.last() != snapshot.id.last.index) {
    wrong = "was never taken";
  } else if (taken->second.bytes().view() != snapshot.bytes) {
    wrong = "is not the one that was taken";
  } else if (!ledger_.is_committed(snapshot.id.last)) {
    wrong = "ends at an entry that is not committed";
  }
  if (wrong == nullptr) return;
  world_.fail("snapshot_state", fmt::format("the snapshot up to {} that {} was sent {}",
                                            id_text(snapshot.id.last), name(node), wrong));
}

void SnapshotOracle::on_snapshot_deleted(const SimNode& node) {
  const raft::LogId base = node.disk().written().base_id();
  if (base.index <= node.machine().durable_index()) return;
  world_.fail("cut_beyond_durable",
              fmt::format("{} deletes the snapshot that its log stands on, which begins behind {}",
                          name(node), id_text(base)));
}

void SnapshotOracle::on_installed(const SimNode& node, const raft::SnapshotId& id) {
  const bool right =
      ledger_.is_committed(id.last) &&
      (node.witness() || node.machine().present() == ledger_.state_at(id.last.index));
  if (right) return;
  world_.fail("snapshot_state",
              fmt::format("{} has installed a state up to {} that is not what was committed",
                          name(node), id_text(id.last)));
}

}  // namespace leasehold::sim
