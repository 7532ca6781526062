#include <leasehold/base/assert.h>
#include <leasehold/storage/group_log.h>

#include <algorithm>
#include <utility>

namespace leasehold::storage {
namespace {

/// Bookkeeping of a batch and of an entry, as the queue's limit counts it.
constexpr std::size_t kBatchOverheadBytes = 256;
constexpr std::size_t kEntryOverheadBytes = 64;

}  // namespace

GroupLog::GroupLog(LogThreads& threads, raft::GroupId group)
    : threads_(threads),
      group_(group),
      found_(threads.store().take_group(group)),
      formed_(found_.foundation.base.has_value()) {}

GroupLog::~GroupLog() {
  if (started_) threads_.leave(group_);
}

// Before start().

const raft::Membership& GroupLog::confirmed() const {
  static const raft::Membership kNone;
  return found_.foundation.confirmed ? *found_.foundation.confirmed : kNone;
}

Result<void> GroupLog::confirm_set(std::vector<raft::Member> members,
                                   const std::optional<raft::GroupSettings>& settings) {
  std::sort(members.begin(), members.end(),
            [](const raft::Member& a, const raft::Member& b) { return a.id < b.id; });
  raft::Membership set;
  for (const raft::Member& member : members) set.voters.push_back(member.id);
  set.members = std::move(members);
  set.settings = settings;

  if (joined()) {
    return Error{ErrorCode::wrong_cluster, "this node joins a group that exists, and forms none"};
  }
  if (!confirmed().members.empty()) {
    if (confirmed() == set) return {};
    return Error{ErrorCode::wrong_cluster,
                 "this node has confirmed another set of initial members: all peers of a new "
                 "cluster have to start on empty folders, with the same peers"};
  }
  // By its directory: in a shared log the number is that of the replica, not of the node.
  const raft::Uuid& own = threads_.store().identity().uuid;
  const bool here = std::any_of(set.members.begin(), set.members.end(),
                                [&own](const raft::Member& member) { return member.uuid == own; });
  if (!here) {
    return Error{ErrorCode::invalid_argument, "this node is not in the set of initial members"};
  }
  // Stores nothing that the decoder would refuse.
  if (const auto decoded = raft::decode_membership(raft::encode_membership(set).view()); !decoded) {
    return Error{ErrorCode::invalid_argument,
                 "the set of initial members is not valid: " + decoded.error().message};
  }
  Foundation foundation = found_.foundation;
  foundation.confirmed = std::move(set);
  return lay(std::move(foundation));
}

Result<void> GroupLog::form(raft::LogId base) {
  if (formed()) return {};
  Foundation foundation = found_.foundation;
  if (!foundation.confirmed) {
    return Error{ErrorCode::invalid_argument, "no set of initial members was confirmed"};
  }
  foundation.base = raft::LogBase{base, *foundation.confirmed};
  return lay(std::move(foundation));
}

Result<void> GroupLog::join() {
  LEASEHOLD_ASSERT(!started_);
  if (joined()) return {};
  if (found_.foundation.confirmed) {
    return Error{
        ErrorCode::wrong_cluster,
        "this node has confirmed a set of initial members, and belongs to that group: start "
        "it as one of them, or with an empty folder"};
  }
  Foundation foundation;
  foundation.confirmed = raft::Membership{};
  foundation.base = raft::LogBase{};
  return lay(std::move(foundation));
}

bool GroupLog::joined() const {
  const Foundation& foundation = found_.foundation;
  return foundation.confirmed && foundation.confirmed->members.empty();
}

/// Replaces the foundation of a log without entries. Before start(): durable on return.
Result<void> GroupLog::lay(Foundation foundation) {
  auto pending = std::make_shared<Pending>();
  pending->group = group_;
  pending->state = {found_.hard_state, found_.shape.last()};
  if (foundation.base) {
    pending->state.last = foundation.base->id;
    // The group has had this term, but nobody has voted in it.
    raft::Term& term = pending->state.hard_state.term;
    term = std::max(term, foundation.base->id.term);
  }
  pending->foundation = foundation;
  pending->bytes = kBatchOverheadBytes;
  const StateRecord state = pending->state;
  if (started_) {
    threads_.persist(std::move(pending));
  } else if (auto laid = threads_.write_now(std::move(pending)); !laid) {
    return laid;
  }
  found_.hard_state = state.hard_state;
  if (foundation.base) found_.shape = Shape(foundation.base->id, {}, foundation.base->id);
  found_.foundation = std::move(foundation);
  formed_ = found_.foundation.base.has_value();
  return {};
}

raft::InitialState GroupLog::take_initial_state() {
  LEASEHOLD_ASSERT(formed());
  LEASEHOLD_ASSERT(!state_taken_);
  state_taken_ = true;
  raft::InitialState state;
  state.hard_state = found_.hard_state;
  state.base = found_.shape.base();
  state.base_membership = found_.foundation.base->membership;
  state.runs = found_.shape.runs();
  state.last_index = found_.shape.last().index;
  state.memberships = found_.memberships;
  state.bytes = found_.payload_bytes;
  if (started_) forget_memberships();
  return state;
}

void GroupLog::forget_memberships() {
  found_.foundation.base.reset();
  found_.memberships = std::vector<raft::MembershipAt>();
}

void GroupLog::start(StorageSink& sink) {
  LEASEHOLD_ASSERT(!started_);
  started_ = true;
  if (state_taken_) forget_memberships();
  threads_.enter(group_, sink);
  if (!threads_.started()) threads_.start();
}

// Behind it.

void GroupLog::persist(raft::PersistBatch batch) {
  LEASEHOLD_ASSERT(started_ && state_taken_);
  LEASEHOLD_ASSERT(!(batch.reset && batch.cut));
  auto pending = std::make_shared<Pending>();
  pending->group = group_;
  Shape& shape = found_.shape;
  if (batch.hard_state) found_.hard_state = *batch.hard_state;
  if (batch.reset) {
    LEASEHOLD_ASSERT(batch.reset->id.index >= shape.base().index);
    shape = Shape(batch.reset->id, {}, batch.reset->id);
  }
  if (batch.truncate_from) shape.truncate(*batch.truncate_from);
  pending->previous_term = shape.last().term;
  pending->bytes = kBatchOverheadBytes;
  for (const raft::Entry& entry : batch.entries) {
    shape.append(entry.id);
    pending->bytes += kEntryOverheadBytes + entry.payload.size();
  }
  if (batch.cut) shape.cut(batch.cut->id);
  if (batch.reset || batch.cut) {
    pending->confirmed = confirmed();
    const auto& membership = (batch.reset ? batch.reset : batch.cut)->membership;
    pending->bytes +=
        raft::encode_membership(membership).size() + raft::encode_membership(confirmed()).size();
  }
  pending->state = {found_.hard_state, shape.last()};
  pending->batch = std::move(batch);
  threads_.persist(std::move(pending));
}

void GroupLog::read(const ReadRequest& request) {
  LEASEHOLD_ASSERT(started_);
  threads_.read(group_, request);
}

}  // namespace leasehold::storage
