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
        left_.changes, left_.suspends, left_.wipes, left_.cuts, left_.settings, left_.notices,
        left_.beats}) {
    print.add(left);
  }
  print.add((left_.drift ? 1U : 0U) + (trusted_ ? 2U : 0U));
  for (std::size_t i = 0; i < replicas(); ++i) {
    const Replica& replica = at(i);
    const raft::Now now = clock(i);
    raft::add_core(*replica.core, now, print);
    print.add(clocks_[node_of(i)].suspended() ? 1 : 0);
    print.add(replica.view.end <= now.holder
                  ? 0
                  : static_cast<std::uint64_t>((replica.view.end - now.holder).count()));
    print.add(replica.view.lease_class.value());
    print.add(replica.view.term.value());
    if (left_.slow_apply) {
      print.add(replica.given.value());
      print.add(replica.shown.value());
    }
    print.add(replica.options.incarnation.value());
    print.add(replica.options.uuid.low);
    add_base(replica.disk.base, print);
    print.add(replica.disk.entries.size());
    for (const raft::Entry& entry : replica.disk.entries) raft::add_entry(entry, print);
    raft::add_hard_state(replica.disk_hard_state, print);
    print.add(replica.unsynced.size());
    for (const raft::PersistBatch& batch : replica.unsynced) add_batch(batch, print);
    print.add(replica.held.size());
    for (const Held& held : replica.held) {
      const raft::ReadyId after = held.message.after;
      const bool due = replica.unsynced.empty() || after < replica.unsynced.front().id;
      print.add(due ? 0 : after - replica.unsynced.front().id + 1);
      print.add(held.message.to.value());
      print.add(held.proof.promised ? 1 : 0);
      raft::add_message(held.message.message, print);
    }
    for (const raft::SnapshotIntent& intent : replica.snapshots) {
      print.add(intent.to.value() * 2 + (replica.core->current(intent) ? 1 : 0));
    }
  }
  for (std::size_t i = 0; left_.shared && i < size(); ++i) add_promises(i, print);
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
    print.add(read.replica * 1000 + read.least.value());
  }
  for (std::size_t group = 0; group < left_.groups; ++group) {
    const Facts& facts = facts_[group];
    print.add(facts.ledger.size());
    for (const Term term : facts.ledger) print.add(term.value());
    for (const NodeId leader : facts.leaders) print.add(leader.value());
  }
  return print;
}

}  // namespace leasehold::explore
