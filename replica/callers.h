// The commands that are on their way, and who waits for them.
#pragma once

#include <leasehold/replica/proposal_table.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace leasehold::replica {

/// The table of the commands that wait. The driver adds a command before it sends it. Then two
/// threads may end the wait: the applier, on its own thread and without the driver's, when the
/// command is applied; and the driver when it gives the command up. The thread that takes the
/// completion out has to call it, so each is called once.
///
/// Only the driver's thread adds and removes, so it reads the table without the mutex. The
/// applier's thread touches nothing of a proposal but its completion.
///
/// Bounded by Limits::proposals_max.
class Callers {
 public:
  /// Any thread. Empty: no command waits under `sequence`, or its completion was taken before.
  ProposeCompletion take(std::uint64_t sequence) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Proposal* proposal = table_.find(sequence);
    if (proposal == nullptr) return {};
    return std::exchange(proposal->done, nullptr);
  }

  // The driver's thread only.

  const ProposalTable& table() const { return table_; }
  Proposal& add(std::unique_ptr<Proposal> proposal) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return table_.insert(std::move(proposal));
  }
  /// With its completion, unless that was taken before.
  std::unique_ptr<Proposal> remove(Proposal& proposal) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return table_.erase(proposal);
  }
  /// Its completion waits under `sequence` from now on.
  void renumber(Proposal& proposal, std::uint64_t sequence) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<Proposal> renumbered = table_.erase(proposal);
    renumbered->sequence = sequence;
    table_.insert(std::move(renumbered));
  }

 private:
  std::mutex mutex_;
  ProposalTable table_;
};

}  // namespace leasehold::replica
