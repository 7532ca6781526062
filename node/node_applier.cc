#include <leasehold/node/node_applier.h>

#include <utility>

namespace leasehold::node {

GroupApplier::GroupApplier(WorkPool& pool, replica::StateMachine& machine, replica::LeaseView& view,
                           replica::Callers& callers, raft::NodeId id,
                           raft::Incarnation incarnation, Install install, Done done)
    : machine_(machine),
      view_(view),
      callers_(callers),
      id_(id),
      incarnation_(incarnation),
      install_(std::move(install)),
      done_(std::move(done)),
      line_(pool) {}

void GroupApplier::apply(std::vector<raft::Entry> entries) {
  line_.add([this, entries = std::move(entries)] {
    if (!failed_) finish(replica::apply_entries(entries, id_, incarnation_, machine_));
  });
}

void GroupApplier::install(const raft::SnapshotId& id) {
  line_.add([this, id] {
    if (failed_) return;
    const Result<void> installed = install_(id);
    if (installed.ok()) return finish(replica::AppliedEntries{id.last.index, {}});
    finish(installed.error());
  });
}

void GroupApplier::finish(Result<replica::AppliedEntries> applied) {
  failed_ = !applied.ok();
  if (failed_) return done_(applied.error());
  // The state machine shows the effects before any caller hears of them.
  view_.publish_applied(applied.value().last);
  done_(replica::complete(std::move(applied).value(), callers_));
}

}  // namespace leasehold::node
