#include <leasehold/base/assert.h>
#include <leasehold/replica/apply.h>
#include <leasehold/replica/command_envelope.h>

#include <cstddef>
#include <string>
#include <utility>

namespace leasehold::replica {

namespace {

/// A command that this process proposed, and where its result will be found.
struct OwnCommand {
  std::uint64_t sequence = 0;
  raft::LogId id;
  /// Position among the results; none for a read through the log.
  std::optional<std::size_t> result;
};

}  // namespace

Result<AppliedEntries> apply_entries(const std::vector<raft::Entry>& entries, raft::NodeId id,
                                     raft::Incarnation incarnation, StateMachine& machine) {
  LEASEHOLD_ASSERT(!entries.empty());
  std::vector<Command> commands;
  commands.reserve(entries.size());
  std::vector<OwnCommand> own;
  for (const raft::Entry& entry : entries) {
    if (entry.kind != raft::EntryKind::command) continue;
    Result<CommandEnvelope> decoded = decode_envelope(entry.payload);
    if (!decoded.ok()) {
      return Error{decoded.error().code,
                   "entry " + std::to_string(entry.id.index.value()) +
                       " is committed but cannot be applied: " + decoded.error().message};
    }
    const CommandEnvelope& envelope = decoded.value();
    const bool for_machine = !envelope.command.empty();
    if (envelope.origin == id && envelope.incarnation == incarnation) {
      OwnCommand mine{envelope.sequence, entry.id, std::nullopt};
      if (for_machine) mine.result = commands.size();
      own.push_back(mine);
    }
    // The view stays valid: the entry owns the payload.
    if (for_machine) {
      commands.push_back({entry.id, envelope.command.view(), envelope.origin});
    }
  }
  const raft::Index last = entries.back().id.index;
  std::vector<Bytes> results = machine.apply(commands, last);
  if (auto failed = machine.failure()) return *std::move(failed);
  LEASEHOLD_ASSERT(results.size() == commands.size());
  AppliedEntries applied;
  applied.last = last;
  applied.own.reserve(own.size());
  for (const OwnCommand& mine : own) {
    Bytes result;
    if (mine.result) result = std::move(results[*mine.result]);
    applied.own.push_back({mine.sequence, mine.id, std::move(result)});
  }
  return applied;
}

Applied complete(AppliedEntries applied, Callers& callers) {
  Applied event;
  event.last = applied.last;
  event.own.reserve(applied.own.size());
  for (AppliedCommand& command : applied.own) {
    event.own.push_back(command.sequence);
    const ProposeCompletion done = callers.take(command.sequence);
    if (!done) continue;  // its deadline passed
    ProposeResult result;
    result.status = ProposeStatus::committed;
    result.id = command.id;
    result.result = std::move(command.result);
    done(std::move(result));
  }
  return event;
}

}  // namespace leasehold::replica
