// What an embedder calls: each goes to the core's state (core_impl.h), which is copied with it.

#include <leasehold/base/assert.h>
#include <leasehold/raft/core_impl.h>

#include <utility>

namespace leasehold::raft {

Core::Core(const CoreOptions& options, InitialState initial, Now now)
    : impl_(std::make_unique<Impl>(options, std::move(initial), now)) {}

Core::Core(const Core& other) : impl_(std::make_unique<Impl>(*other.impl_)) {}

Core::Core(Core&& other) noexcept = default;

Core& Core::operator=(const Core& other) {
  LEASEHOLD_ASSERT(other.impl_ != nullptr);
  if (impl_ != nullptr) {
    *impl_ = *other.impl_;  // keeps the capacity of its containers
  } else {
    impl_ = std::make_unique<Impl>(*other.impl_);
  }
  return *this;
}

Core& Core::operator=(Core&& other) noexcept = default;

Core::~Core() = default;

// ---- Inputs ----

void Core::tick(Now now) {
  impl_->tick(now);
}

void Core::step(Now now, const Peer& from, Message message) {
  impl_->step(now, from, message);
}

void Core::ended(Now now, const Peer& peer) {
  impl_->ended(now, peer);
}

void Core::rest_on(SharedPromises& shared) {
  impl_->rest_on(shared);
}

std::optional<Release> Core::release_at_stop() {
  return impl_->release_at_stop();
}

void Core::released(Now now, const Peer& peer, Term term) {
  impl_->released(now, peer, term);
}

void Core::promises_moved(Now now) {
  impl_->promises_moved(now);
}

void Core::machine_stalled(Now now, bool stalled) {
  impl_->machine_stalled(now, stalled);
}

std::optional<LogId> Core::propose(Now now, std::vector<Bytes> payloads,
                                   const ExpectedLeader& expected) {
  return impl_->propose(now, std::move(payloads), expected);
}

bool Core::meets(const ExpectedLeader& expected) const {
  return impl_->meets(expected);
}

bool Core::takes_proposals() const {
  return impl_->takes_proposals();
}

std::variant<LogId, ChangeRefused> Core::change_membership(Now now, const WantedMembers& wanted,
                                                           std::optional<MembershipId> expected) {
  return impl_->change_membership(now, wanted, expected);
}

std::variant<LogId, SettingsRefused> Core::change_settings(Now now, const GroupSettings& wanted) {
  return impl_->change_settings(now, wanted);
}

std::optional<TransferRefused> Core::transfer(Now now, NodeId to) {
  return impl_->transfer(now, to);
}

void Core::read_index(Now now, std::uint64_t read, ReadMode mode) {
  impl_->read_index(now, read, mode);
}

void Core::listens(Now now, NodeId peer) {
  impl_->listens(now, peer);
}

void Core::applied(Now now, Index index) {
  impl_->applied(now, index);
}

void Core::persisted(Now now, ReadyId id) {
  impl_->persisted(now, id);
}

void Core::filled(Now now, const AppendIntent& intent, Index last, std::size_t bytes) {
  impl_->filled(now, intent, last, bytes);
}

bool Core::current(const AppendIntent& intent) const {
  return impl_->current(intent);
}

void Core::cut_log(Now now, Index to) {
  impl_->cut_log(now, to);
}

bool Core::stamp(const SnapshotIntent& intent, SnapshotChunk& chunk) const {
  return impl_->stamp(intent, chunk);
}

bool Core::current(const SnapshotIntent& intent) const {
  return impl_->current(intent);
}

void Core::snapshot_ended(Now now, const SnapshotIntent& intent) {
  impl_->snapshot_ended(now, intent);
}

void Core::chunk_stored(Now now, const StoredChunk& stored) {
  impl_->chunk_stored(now, stored);
}

bool Core::snapshot_received(Now now, const SnapshotId& id, const Membership& membership) {
  return impl_->snapshot_received(now, id, membership);
}

// ---- Output, and what can be seen ----

bool Core::take_ready(Ready& ready) {
  return impl_->take_ready(ready);
}

void Core::give_back() {
  impl_->give_back();
}

PromiseInstant Core::next_deadline() const {
  return impl_->next_deadline();
}

NodeId Core::id() const {
  return impl_->options().id;
}

const CoreOptions& Core::options() const {
  return impl_->options();
}

Role Core::role() const {
  return impl_->role();
}

bool Core::at_rest() const {
  return impl_->at_rest();
}

LeaseClassId Core::lease_class() const {
  return impl_->lease_class();
}

const Uuid* Core::bound_to() const {
  return impl_->bound_to();
}

bool Core::awaits_place() const {
  return impl_->awaits_place();
}

Term Core::term() const {
  return impl_->hard_state().term;
}

NodeId Core::leader() const {
  return impl_->leader();
}

Index Core::commit_index() const {
  return impl_->commit_index();
}

Index Core::cut_limit() const {
  return impl_->cut_limit();
}

Index Core::durable_index() const {
  return impl_->durable_index();
}

const Log& Core::log() const {
  return impl_->log();
}

const lease::Timing& Core::timing() const {
  return impl_->timing();
}

const Membership& Core::membership() const {
  return impl_->log().membership();
}

const HardState& Core::hard_state() const {
  return impl_->hard_state();
}

PromiseInstant Core::promise_until() const {
  return impl_->promise_until();
}

const lease::VoterPromise& Core::promise() const {
  return impl_->promise();
}

HolderInstant Core::lease_end() const {
  return impl_->lease_end();
}

std::optional<HolderInstant> Core::quorum_round() const {
  return impl_->quorum_round();
}

const Peers& Core::progress() const {
  return impl_->progress();
}

std::optional<HolderInstant> Core::last_heard(NodeId peer) const {
  const auto found = progress().find(peer);
  return found != progress().end() ? impl_->last_heard(found->second) : std::nullopt;
}

std::size_t Core::pending_reads() const {
  return impl_->pending_reads();
}

}  // namespace leasehold::raft
