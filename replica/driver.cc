#include <leasehold/base/assert.h>
#include <leasehold/raft/carry_out.h>
#include <leasehold/replica/append_filler.h>
#include <leasehold/replica/apply_queue.h>
#include <leasehold/replica/driver.h>
#include <leasehold/replica/driver_context.h>
#include <leasehold/replica/entry_cache.h>
#include <leasehold/replica/group_calls.h>
#include <leasehold/replica/log_keeper.h>
#include <leasehold/replica/proposals.h>
#include <leasehold/replica/reads.h>
#include <leasehold/replica/refusal.h>
#include <leasehold/replica/snapshot_receiver.h>
#include <leasehold/replica/snapshot_sender.h>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace leasehold::replica {

/// The loop itself. Every input goes to the core or to the waiters; then drain() acts on the
/// core's effects, in the order that raft/ready.h gives, until there are none.
class Driver::Impl {
 public:
  Impl(const DriverOptions& options, raft::InitialState initial, const Ports& ports, lease::Now now)
      : applied_at_start_(initial.applied),
        log_bytes_at_start_(initial.bytes),
        context_(options, std::move(initial), ports, now),
        cache_(options.cache_bytes_max),
        filler_(context_, cache_),
        apply_(context_, cache_, applied_at_start_),
        sender_(context_),
        receiver_(context_),
        keeper_(context_, now, log_bytes_at_start_, applied_at_start_),
        proposals_(context_),
        reads_(context_),
        group_calls_(context_) {
    context_.applied = applied_at_start_;
    ports.view.publish_applied(applied_at_start_);
    drain(now);
  }

  void handle(lease::Now now, Event& event) {
    begin();
    feed(now, event);
    finish(now);
  }

  void handle_batch(lease::Now now, std::vector<Event>& events) {
    begin();
    for (Event& event : events) feed(now, event);
    events.clear();
    finish(now);
  }

  raft::PromiseInstant next_deadline() const {
    if (stopped_) return raft::PromiseInstant::never();
    raft::PromiseInstant next = std::min(context_.core.next_deadline(), retry_at_);
    next = std::min(next, sender_.next_deadline());
    next = std::min(next, proposals_.next_resend());
    if (!context_.deadlines.empty()) next = std::min(next, context_.deadlines.earliest().at);
    return next;
  }

  DriverContext& context() { return context_; }
  std::size_t pending() const { return proposals_.size() + reads_.size() + group_calls_.size(); }
  bool awaits_applied() const {
    return reads_.size() > 0 || proposals_.awaits_applied() || apply_.behind();
  }
  const std::optional<Error>& failure() const { return failure_; }
  const LogKeeper& keeper() const { return keeper_; }
  std::vector<SnapshotTransfer> transfers() const {
    std::vector<SnapshotTransfer> all;
    sender_.status(all);
    receiver_.status(all);
    return all;
  }

 private:
  struct Hands;

  void begin() {
    LEASEHOLD_ASSERT(!inside_);
    inside_ = true;
  }
  void finish(lease::Now now);
  void feed(lease::Now now, Event& event);
  raft::NodeId full_member() const;

  void on(lease::Now, Tick&) {}
  void on(lease::Now now, PeerMessageReceived& event);
  void on(lease::Now now, Propose& event) { proposals_.propose(now, event); }
  void on(lease::Now now, Read& event);
  void on(lease::Now now, WaitApplied& event) { reads_.wait_applied(now, event); }
  void on(lease::Now, CutLog& event) { keeper_.demanded(event); }
  void on(lease::Now now, ChangeMembers& event) { group_calls_.change(now, event); }
  void on(lease::Now now, HandOver& event) { group_calls_.hand_over(now, event); }
  void on(lease::Now, Cancel& event);
  void on(lease::Now now, Persisted& event);
  void on(lease::Now now, EntriesRead& event);
  void on(lease::Now now, Applied& event);
  void on(lease::Now, MachineDurable& event);
  void on(lease::Now now, SnapshotTaken& event) { sender_.taken(now, event); }
  void on(lease::Now now, SnapshotRead& event) { sender_.read(now, event); }
  void on(lease::Now now, ChunkStored& event) { receiver_.stored(now, event); }
  void on(lease::Now, StorageSpace& event) { space(log_full_, event.full); }
  void on(lease::Now, MachineSpace& event) { space(machine_full_, event.full); }
  void on(lease::Now, StorageFailed& event) { fail(std::move(event.error)); }
  void on(lease::Now, Stop&) { stop(); }

  void space(bool& of, bool full) {
    of = full;
    context_.disk_full = log_full_ || machine_full_;
  }
  void step(lease::Now now, const raft::Peer& from, raft::Message& message);
  void make_heartbeat(raft::AppendRequest& request) const;

  void drain(lease::Now now);
  void act(lease::Now now);
  void write(lease::Now now, raft::PersistBatch& batch,
             const std::vector<raft::AppendIntent>& intents);
  void release_held();
  void note_leadership(lease::Now now);
  void route_held(lease::Now now);
  void expire(lease::Now now);
  bool still_waits(const Deadlines::Entry& entry) const;
  void fail(Error error);
  void stop();

  raft::Index applied_at_start_;
  std::uint64_t log_bytes_at_start_;
  DriverContext context_;
  EntryCache cache_;
  AppendFiller filler_;
  ApplyQueue apply_;
  SnapshotSender sender_;
  SnapshotReceiver receiver_;
  LogKeeper keeper_;
  Proposals proposals_;
  Reads reads_;
  GroupCalls group_calls_;

  raft::Ready ready_;
  /// Batches up to this one are durable.
  raft::ReadyId durable_;
  /// Messages that wait for a batch, in the order in which the core gave them.
  std::vector<raft::HeldMessage> held_;

  // What was last known of the leadership, to see it change.
  raft::Term term_;
  raft::NodeId leader_;
  bool leads_ = false;
  /// When what a known leader refused is tried again; never() when nothing is.
  raft::PromiseInstant retry_at_ = raft::PromiseInstant::never();

  bool log_full_ = false;
  bool machine_full_ = false;
  bool inside_ = false;
  bool stopped_ = false;
  std::optional<Error> failure_;
};

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
  const bool asks = std::holds_alternative<Propose>(event) || std::holds_alternative<Read>(event) ||
                    std::holds_alternative<WaitApplied>(event);
  if (asks && context_.options.core.witness) {
    // There is no state here to answer from, whoever leads.
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
  if (event.message.group != context_.options.core.group) return;
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
          // The group is formed before a driver exists: see formation.h.
          static_assert(std::is_same_v<What, wire::FormationConfirm>);
        }
      },
      event.message.payload);
}

void Driver::Impl::step(lease::Now now, const raft::Peer& from, raft::Message& message) {
  if (context_.disk_full) {
    raft::AppendRequest* append = std::get_if<raft::AppendRequest>(&message);
    if (append != nullptr) make_heartbeat(*append);
  }
  std::optional<raft::SnapshotReply> reply;
  if (const auto* snapshot = std::get_if<raft::SnapshotReply>(&message)) reply = *snapshot;
  context_.core.step(now, from, std::move(message));
  // Behind the core: the answer may have shown that this node leads no more.
  if (reply) sender_.replied(now, from.id, *reply);
}

/// Without space for entries an append is taken for what else it is: a prefix of an append is an
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
  if (event.mode == ReadMode::log) {
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
}

void Driver::Impl::on(lease::Now now, Persisted& event) {
  if (event.id <= durable_) return;
  durable_ = event.id;
  context_.core.persisted(now, event.id);
  release_held();
}

void Driver::Impl::on(lease::Now now, EntriesRead& event) {
  std::optional<Error> failure;
  if (!apply_.entries_read(event, failure)) filler_.entries_read(now, event, failure);
  if (failure) fail(std::move(*failure));
}

void Driver::Impl::on(lease::Now now, Applied& event) {
  LEASEHOLD_ASSERT(event.last > context_.applied);
  const std::optional<raft::LogId> installed = apply_.applied(event.last);
  context_.applied = event.last;
  if (installed) {
    ++context_.counters.snapshots_installed;
    keeper_.installed(installed->index);
    proposals_.installed(now, *installed);
  }
  const auto term = context_.core.log().term_at(event.last);
  proposals_.applied(now, event.own, term.value_or(raft::Term(0)));
  reads_.applied();
}

void Driver::Impl::finish(lease::Now now) {
  if (!stopped_) {
    proposals_.flush(now);
    // After the events, so that a heartbeat that waited while this process slept still counts.
    if (now.promise >= context_.core.next_deadline()) context_.core.tick(now);
    drain(now);
  }
  if (!stopped_) expire(now);
  if (!stopped_) {
    proposals_.resend(now);
    if (now.promise >= retry_at_) {
      retry_at_ = raft::PromiseInstant::never();
      route_held(now);
      drain(now);
    }
    const bool leader_known = leads_ || leader_ != raft::kNobody;
    if (!leader_known || (!proposals_.any_held() && !reads_.any_held())) {
      retry_at_ = raft::PromiseInstant::never();
    } else if (retry_at_ == raft::PromiseInstant::never()) {
      retry_at_ = now.promise + context_.options.core.timing.heartbeat;
    }
  }
  inside_ = false;
}

void Driver::Impl::drain(lease::Now now) {
  do {
    while (!stopped_ && context_.core.take_ready(ready_)) {
      act(now);
      proposals_.flush(now);
    }
    if (stopped_) return;
  } while (sender_.turn(now) || keeper_.turn(now, sender_.holds()));
  apply_.pump();
  cache_.trim(context_.core.durable_index(), apply_.handed());
}

/// What raft::carry_out() asks of a host.
struct Driver::Impl::Hands {
  Impl& driver;
  lease::Now now;

  void publish(const raft::LeaseState& state) { driver.context_.ports.view.publish(state); }
  void send(raft::NodeId to, raft::Message message) {
    if (std::holds_alternative<raft::AppendRequest>(message)) {
      ++driver.context_.counters.heartbeats_sent;
    }
    driver.context_.send(to, std::move(message));
  }
  void write(raft::PersistBatch& batch, const std::vector<raft::AppendIntent>& intents) {
    driver.write(now, batch, intents);
  }
  void hold(raft::HeldMessage held) {
    if (held.after <= driver.durable_) {
      driver.context_.send(held.to, std::move(held.message));
    } else {
      driver.held_.push_back(std::move(held));
    }
  }
  void send_snapshot(const raft::SnapshotIntent& intent) { driver.sender_.send(intent); }
  void store_chunk(const raft::ReceivedChunk& chunk) { driver.receiver_.received(now, chunk); }
  void install(const raft::SnapshotId& id) { driver.apply_.install(id); }
  void apply_to(raft::Index index) { driver.apply_.raise_target(index); }
  void committed(raft::Index index) { driver.proposals_.committed(index); }
  void answer(const raft::ReadAnswer& answer) { driver.reads_.answered(answer); }
  void tell(const raft::Event& event) {
    const auto* role = std::get_if<raft::RoleChanged>(&event.what);
    const bool elected = role != nullptr && role->to == raft::Role::leader;
    if (elected) ++driver.context_.counters.elections_won;
    driver.group_calls_.on_event(event);
    driver.context_.ports.observer.on_event(event);
  }
};

void Driver::Impl::act(lease::Now now) {
  Hands hands{*this, now};
  raft::carry_out(ready_, hands);
  note_leadership(now);
  group_calls_.look();
}

/// Entries come into the cache first, then they leave for the peers, and last they go to the disk:
/// a leader's appends overtake its own write.
void Driver::Impl::write(lease::Now now, raft::PersistBatch& batch,
                         const std::vector<raft::AppendIntent>& intents) {
  if (batch.reset) {
    cache_.clear();
    keeper_.reset(now, batch.reset->id.index);
  }
  if (batch.truncate_from) {
    cache_.truncate(*batch.truncate_from);
    keeper_.truncated(*batch.truncate_from);
  }
  for (const raft::Entry& entry : batch.entries) cache_.append(entry);
  keeper_.appended(now, batch.entries);
  for (const raft::AppendIntent& intent : intents) filler_.fill(now, intent);
  if (batch.empty()) return;
  ++context_.counters.batches_persisted;
  context_.ports.storage.persist(std::move(batch));
}

void Driver::Impl::release_held() {
  std::size_t kept = 0;
  for (raft::HeldMessage& held : held_) {
    if (held.after <= durable_) {
      context_.send(held.to, std::move(held.message));
    } else {
      if (&held_[kept] != &held) held_[kept] = std::move(held);
      ++kept;
    }
  }
  held_.resize(kept);
}

void Driver::Impl::note_leadership(lease::Now now) {
  const raft::Core& core = context_.core;
  const bool leads = context_.leads();
  if (core.term() == term_ && core.leader() == leader_ && leads == leads_) return;
  const bool same_leadership = leads_ && leads && core.term() == term_;
  if (leads_ && !same_leadership) proposals_.leadership_lost();
  if (leads && !same_leadership) proposals_.leadership_won(core.term());
  term_ = core.term();
  leader_ = core.leader();
  leads_ = leads;
  if (leads_ || leader_ != raft::kNobody) route_held(now);
}

void Driver::Impl::route_held(lease::Now now) {
  proposals_.route_held(now);
  proposals_.flush(now);
  reads_.route_held(now);
}

void Driver::Impl::expire(lease::Now now) {
  Deadlines& deadlines = context_.deadlines;
  while (!deadlines.empty()) {
    const Deadlines::Entry entry = deadlines.earliest();
    if (entry.at > now.promise && still_waits(entry)) break;
    deadlines.pop();
    if (entry.kind == WaiterKind::proposal) {
      proposals_.expired(entry.number);
    } else if (entry.kind == WaiterKind::read) {
      reads_.expired(entry.number);
    } else {
      group_calls_.expired(entry.number);
    }
  }
  if (deadlines.size() > 2 * pending() + 1024) {
    deadlines.sweep([this](const Deadlines::Entry& entry) { return still_waits(entry); });
  }
}

bool Driver::Impl::still_waits(const Deadlines::Entry& entry) const {
  switch (entry.kind) {
    case WaiterKind::proposal: return proposals_.waits(entry.number);
    case WaiterKind::read: return reads_.waits(entry.number);
    case WaiterKind::group_call: return group_calls_.waits(entry.number);
  }
  LEASEHOLD_UNREACHABLE();
}

void Driver::Impl::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
  stop();
}

void Driver::Impl::stop() {
  stopped_ = true;
  // First of all: nobody may read by a lease of a node that no longer takes part.
  context_.ports.view.publish(
      {context_.core.term(), raft::HolderInstant::earliest(), context_.core.commit_index()});
  proposals_.complete_all();
  reads_.complete_all();
  keeper_.complete_all();
  group_calls_.complete_all();
  held_.clear();
  context_.deadlines.clear();
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
