// The inputs of a Driver: each goes to the core, or to the part that waits for it.
#include <leasehold/replica/driver_impl.h>
#include <leasehold/replica/refusal.h>

#include <type_traits>
#include <utility>

namespace leasehold::replica {

/// Whom a witness sends its callers to: the leader, or somebody who can find it.
raft::NodeId Driver::Impl::full_member() const {
  const raft::Core& core = context_.core;
  const raft::Membership& membership = core.membership();
  const raft::NodeId leader = core.leader();
  if (leader != raft::kNobody && !membership.is_witness(leader)) return leader;
  const auto found =
      std::find_if(membership.voters.begin(), membership.voters.end(),
                   [&membership](raft::NodeId id) { return !membership.is_witness(id); });
  return found == membership.voters.end() ? raft::kNobody : *found;
}

void Driver::Impl::feed(lease::Now now, Event& event) {
  if (stopped_) {
    // Nobody is left waiting.
    context_.completions.add([late = std::move(event)]() mutable { refuse(late, false); });
    return;
  }
  const bool witness = context_.core.options().witness;
  if (auto* read = std::get_if<ReadLog>(&event); read != nullptr && witness) {
    // It hears of commits that the leader does not show yet (rule 52).
    context_.completions.add([done = std::move(read->done)] {
      if (!done) return;
      done(Error{ErrorCode::unavailable,
                 "a witness shows nobody its log: read that of another member"});
    });
    return;
  }
  const bool asks = std::holds_alternative<Propose>(event) || std::holds_alternative<Read>(event) ||
                    std::holds_alternative<WaitApplied>(event);
  if (asks && witness) {
    // A witness has no state to answer from, whichever node leads.
    context_.completions.add(
        [late = std::move(event), to = full_member()]() mutable { refuse(late, false, to); });
    return;
  }
  // Commands that wait to be appended together are appended before anything that could change who
  // leads.
  const bool may_be_command = std::holds_alternative<Propose>(event) ||
                              std::holds_alternative<Read>(event) ||
                              std::holds_alternative<PeerMessageReceived>(event);
  if (!may_be_command) proposals_.flush(now);
  std::visit([this, now](auto& what) { on(now, what); }, event);
}

void Driver::Impl::on(lease::Now now, PeerMessageReceived& event) {
  if (event.message.group != context_.core.options().group) return;
  if (context_.tap != nullptr) context_.tap->received(event.from, event.message.payload);
  sender_.heard(event.from.id);
  std::visit(
      [this, now, &event](auto& payload) {
        using What = std::decay_t<decltype(payload)>;
        if constexpr (std::is_same_v<What, raft::Message>) {
          proposals_.flush(now);
          step(now, event.from, payload);
        } else if constexpr (std::is_same_v<What, wire::ForwardRequest>) {
          context_.core.listens(now, event.from.id);
          proposals_.forwarded(event.from, payload);
        } else if constexpr (std::is_same_v<What, wire::ForwardReply>) {
          proposals_.refused(now, event.from.id, payload);
        } else {
          // The group is formed before a driver exists: see formation.h. Beats are of no group.
          static_assert(std::is_same_v<What, wire::FormationConfirm> ||
                        std::is_same_v<What, raft::ProcessBeat> ||
                        std::is_same_v<What, raft::ProcessBeatReply>);
        }
      },
      event.message.payload);
}

void Driver::Impl::step(lease::Now now, const raft::Peer& from, raft::Message& message) {
  if (context_.disk_full || context_.ports.storage.behind()) {
    raft::AppendRequest* append = std::get_if<raft::AppendRequest>(&message);
    if (append != nullptr) make_heartbeat(*append);
  }
  std::optional<raft::SnapshotReply> reply;
  if (const auto* snapshot = std::get_if<raft::SnapshotReply>(&message)) reply = *snapshot;
  context_.core.step(now, from, std::move(message));
  // Behind the core: the answer may have shown that this node leads no more.
  if (reply) sender_.replied(now, from.id, *reply);
}

/// Without room for entries an append is taken for what else it is: a prefix of an append is an
/// append that the leader could have sent, and so is an empty one behind any entry that is
/// committed. So the log does not grow, the leader is heard, and it is not made to look for the
/// place where the logs agree, over and over.
void Driver::Impl::make_heartbeat(raft::AppendRequest& request) const {
  const raft::Core& core = context_.core;
  request.entries.clear();
  if (request.term < core.term() || core.log().matches(request.prev)) return;
  const raft::Index commit = core.commit_index();
  if (request.prev.index > commit) request.prev = {*core.log().term_at(commit), commit};
}

void Driver::Impl::on(lease::Now, MachineDurable& event) {
  std::optional<Error> failure;
  keeper_.answered(event, failure);
  if (failure) fail(std::move(*failure));
}

void Driver::Impl::on(lease::Now now, Read& event) {
  if (reads_.answer_by_age(now, event)) return;
  if (event.mode == raft::ReadMode::log) {
    proposals_.read(now, event);
  } else {
    reads_.read(now, event);
  }
}

void Driver::Impl::on(lease::Now, Cancel& event) {
  if (event.group == CallGroup(0)) return;
  proposals_.cancelled(event.group);
  reads_.cancelled(event.group);
  group_calls_.cancelled(event.group);
  log_reads_.cancelled(event.group);
}

void Driver::Impl::on(lease::Now now, Persisted& event) {
  if (event.id <= durable_) return;
  durable_ = event.id;
  context_.core.persisted(now, event.id);
  proposals_.durable(context_.core.durable_index());
  release_held();
}

void Driver::Impl::on(lease::Now now, EntriesRead& event) {
  std::optional<Error> failure;
  if (!apply_.entries_read(event, failure) && !log_reads_.entries_read(now, event, failure)) {
    filler_.entries_read(now, event, failure);
  }
  if (failure) fail(std::move(*failure));
}

void Driver::Impl::on(lease::Now now, Applied& event) {
  LEASEHOLD_ASSERT(event.last > context_.applied);
  const std::optional<raft::LogId> installed = apply_.applied(event.last);
  context_.applied = event.last;
  context_.core.applied(now, event.last);
  if (installed) {
    ++context_.counters.snapshots_installed;
    keeper_.installed(installed->index);
    proposals_.installed(now, *installed);
  }
  const auto term = context_.core.log().term_at(event.last);
  proposals_.applied(now, event.own, term.value_or(raft::Term(0)));
  reads_.applied();
}

Driver::Driver(const DriverOptions& options, raft::InitialState initial, Ports ports,
               lease::Now now)
    : impl_(std::make_unique<Impl>(options, std::move(initial), ports, now)) {}
Driver::~Driver() = default;

void Driver::handle(lease::Now now, Event event) {
  impl_->handle(now, event);
}
void Driver::handle_batch(lease::Now now, std::vector<Event>& events) {
  impl_->handle_batch(now, events);
}

void Driver::give_back() {
  impl_->give_back();
}

void Driver::tap(std::shared_ptr<Tap> tap) {
  impl_->context().tap = std::move(tap);
}

void Driver::rest_on(const LeaseEnds& ends) {
  impl_->context().ports.view.rest_on(ends);
}

std::vector<raft::Release> Driver::take_releases() {
  return impl_->take_releases();
}

raft::GroupId Driver::group() const {
  return impl_->context().core.options().group;
}

std::vector<std::function<void()>> Driver::take_completions() {
  return impl_->context().completions.take();
}
raft::PromiseInstant Driver::next_deadline() const {
  return impl_->next_deadline();
}
const raft::Core& Driver::core() const {
  return impl_->context().core;
}
raft::Index Driver::applied() const {
  return impl_->context().applied;
}
const DriverCounters& Driver::counters() const {
  return impl_->context().counters;
}
std::size_t Driver::pending() const {
  return impl_->pending();
}
ProposalPlaces Driver::proposals() const {
  return impl_->proposals();
}
bool Driver::awaits_applied() const {
  return impl_->awaits_applied();
}
std::vector<SnapshotTransfer> Driver::transfers() const {
  return impl_->transfers();
}
std::uint64_t Driver::log_bytes() const {
  return impl_->keeper().bytes();
}
raft::Index Driver::machine_durable() const {
  return impl_->keeper().machine_durable();
}
bool Driver::log_never_cut() const {
  return impl_->keeper().never_cuts();
}
bool Driver::disk_full() const {
  return impl_->context().disk_full;
}
const std::optional<Error>& Driver::failure() const {
  return impl_->failure();
}

}  // namespace leasehold::replica
