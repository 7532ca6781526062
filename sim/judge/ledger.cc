#include <leasehold/base/assert.h>
#include <leasehold/replica/command_envelope.h>
#include <leasehold/sim/judge/ledger.h>

#include <algorithm>

namespace leasehold::sim {

Ledger::Ledger(const World& world) : membership_(founding_membership(world.plan)) {}

const Ledger::Committed& Ledger::at(raft::Index index) const {
  LEASEHOLD_ASSERT(index > raft::Index() && index <= last());
  return entries_[index.value() - 1];
}

bool Ledger::is_committed(raft::LogId id) const {
  return id.index > raft::Index() && id.index <= last() && at(id.index).term == id.term;
}

bool Ledger::durable_on_quorum(raft::LogId id, const SimNode* without) const {
  return on_quorum([id, without](const SimNode& node) {
    return &node != without && node.disk().durable().holds(id);
  });
}

Ledger::Committed Ledger::read(const SimNode& node, const raft::Entry& entry) const {
  Committed read;
  read.term = entry.id.term;
  read.committed_in = node.running().term();
  read.kind = entry.kind;
  read.payload = entry.payload;
  if (entry.kind == raft::EntryKind::command) {
    const Result<replica::CommandEnvelope> envelope = replica::decode_envelope(entry.payload);
    LEASEHOLD_ASSERT(envelope.ok());
    read.command = RegisterMachine::decode_command(envelope.value().command.view());
  }
  return read;
}

RegisterMachine::Done Ledger::execute(raft::LogId id, const RegisterMachine::Command& command) {
  RegisterMachine::Done done = RegisterMachine::apply_to(tip_, id, command);
  tip_.values.clear();
  return done;
}

void Ledger::add(Committed added) {
  if (added.kind == raft::EntryKind::membership) {
    Result<raft::Membership> membership = raft::decode_membership(added.payload.view());
    LEASEHOLD_ASSERT(membership.ok());
    count(membership_.settings, membership.value().settings);
    membership_ = std::move(membership).value();
    ++membership_entries_;
  }
  added.history = tip_.history;
  newest_term_ = std::max(newest_term_, added.term);
  entries_.push_back(std::move(added));
}

void Ledger::count(const std::optional<raft::GroupSettings>& before,
                   const std::optional<raft::GroupSettings>& now) {
  if (before == now) return;
  SettingsCounts& counts = settings_counts_;
  ++counts.committed;
  LEASEHOLD_ASSERT(now.has_value());
  const lease::Timing was = before ? before->timing : now->timing;
  if (now->timing.lease > was.lease) ++counts.longer;
  if (now->timing.lease < was.lease) ++counts.shorter;
  if (now->timing.max_clock_drift_ppm > was.max_clock_drift_ppm) ++counts.more_drift;
  if (now->timing.max_clock_drift_ppm < was.max_clock_drift_ppm) ++counts.less_drift;
  if (now->timing.lease == was.lease && now->timing.max_clock_drift_ppm == was.max_clock_drift_ppm)
    ++counts.other;
}

const RegisterMachine::State& Ledger::state_at(raft::Index index) {
  LEASEHOLD_ASSERT(index <= last());
  if (index < state_.applied) state_ = milestones_[index.value() / kMilestone];
  for (raft::Index i = state_.applied.next(); i <= index; i = i.next()) {
    const Committed& entry = at(i);
    if (entry.command) RegisterMachine::apply_to(state_, {entry.term, i}, *entry.command);
    state_.applied = i;
    if (i.value() == milestones_.size() * kMilestone) milestones_.push_back(state_);
  }
  return state_;
}

}  // namespace leasehold::sim
