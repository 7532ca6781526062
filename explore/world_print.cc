// What makes two states the same.
#include <leasehold/explore/world.h>

namespace leasehold::explore {
namespace {

void add_base(const raft::LogBase& base, raft::Fingerprint& print) {
  print.add(base.id.index.value());
  print.add(base.id.term.value());
}

void add_batch(const raft::PersistBatch& batch, raft::Fingerprint& print) {
  print.add(batch.hard_state ? 1 : 0);
  if (batch.hard_state) raft::add_hard_state(*batch.hard_state, print);
  for (const auto* base : {&batch.reset, &batch.cut}) {
    print.add(*base ? 1 : 0);
    if (*base) add_base(**base, print);
  }
  print.add(batch.truncate_from ? batch.truncate_from->value() : 0);
  print.add(batch.entries.size());
  for (const raft::Entry& entry : batch.entries) raft::add_entry(entry, print);
}

}  // namespace

// Memberships follow from the entries. Those below a base follow from the committed terms, if the
// membership changed in one way only: changes are few, and what is cut off was committed.
raft::Fingerprint World::fingerprint() const {
  raft::Fingerprint print;
  print.add(rates_);
  for (const std::uint8_t left :
       {left_.time, left_.restarts, left_.duplicates, left_.proposals, left_.reads, left_.transfers,
        left_.changes, left_.suspends, left_.wipes, left_.cuts, left_.settings, left_.notices}) {
    print.add(left);
  }
  print.add((left_.drift ? 1U : 0U) + (trusted_ ? 2U : 0U));
  for (std::size_t i = 0; i < size(); ++i) {
    const Node& node = at(i);
    const raft::Now now = clock(i);
    raft::add_core(*node.core, now, print);
    print.add(clocks_[i].suspended() ? 1 : 0);
    print.add(node.view.end <= now.holder
                  ? 0
                  : static_cast<std::uint64_t>((node.view.end - now.holder).count()));
    print.add(node.view.term.value());
    print.add(node.options.incarnation.value());
    print.add(node.options.uuid.low);
    add_base(node.disk.base, print);
    print.add(node.disk.entries.size());
    for (const raft::Entry& entry : node.disk.entries) raft::add_entry(entry, print);
    raft::add_hard_state(node.disk_hard_state, print);
    print.add(node.unsynced.size());
    for (const raft::PersistBatch& batch : node.unsynced) add_batch(batch, print);
    print.add(node.held.size());
    for (const Held& held : node.held) {
      const raft::ReadyId after = held.message.after;
      const bool due = node.unsynced.empty() || after < node.unsynced.front().id;
      print.add(due ? 0 : after - node.unsynced.front().id + 1);
      print.add(held.message.to.value());
      print.add(held.proof.promised ? 1 : 0);
      raft::add_message(held.message.message, print);
    }
    for (const raft::SnapshotIntent& intent : node.snapshots) {
      print.add(intent.to.value() * 2 + (node.core->current(intent) ? 1 : 0));
    }
  }
  // The messages on their way are a set: their order does not matter.
  raft::Fingerprint sum{0, 0};
  for (const Flight& flight : flights_) {
    sum.high += flight.print.high;
    sum.low += flight.print.low;
  }
  print.add(sum.high);
  print.add(sum.low);
  for (const Read& read : reads_) {
    print.add(read.number);
    print.add(read.node.value() * 1000 + read.least.value());
  }
  print.add(ledger_.size());
  for (const Term term : ledger_) print.add(term.value());
  for (const NodeId leader : leaders_) print.add(leader.value());
  return print;
}

}  // namespace leasehold::explore
