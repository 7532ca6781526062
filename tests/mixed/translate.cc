#include "translate.h"

#include <leasehold/base/assert.h>
#include <leasehold/wire/codec.h>
#include <leasehold/wire/frame.h>
#include <leasehold_0_1/wire/codec.h>
#include <leasehold_0_1/wire/frame.h>

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace leasehold::mixed {
namespace {

constexpr std::size_t kFrameBytesMax = std::size_t{256} << 20U;
/// The only wire version of release 0.1.
constexpr std::uint16_t kEarlierWireVersion = 3;

template <class To, class From>
std::vector<To> numbers(const std::vector<From>& from) {
  std::vector<To> to;
  to.reserve(from.size());
  for (const From& one : from) to.push_back(number<To>(one));
  return to;
}

template <class Buffer>
std::string bytes_of(Buffer& buffer) {
  std::string bytes;
  while (!buffer.empty()) {
    std::string_view view;
    LEASEHOLD_ASSERT(buffer.front(&view, 1) == 1);
    bytes += view;
    buffer.consume(view.size());
  }
  return bytes;
}

}  // namespace

// ---- Values ----

old::lease::Now to_old(lease::Now now) {
  return {instant<old::lease::HolderInstant>(now.holder),
          instant<old::lease::PromiseInstant>(now.promise)};
}

old::Bytes to_old(const Bytes& bytes) {
  return old::Bytes(bytes.view());
}

Bytes to_new(const old::Bytes& bytes) {
  return Bytes(bytes.view());
}

old::raft::LogId to_old(raft::LogId id) {
  return {number<old::raft::Term>(id.term), number<old::raft::Index>(id.index)};
}

raft::LogId to_new(old::raft::LogId id) {
  return {number<raft::Term>(id.term), number<raft::Index>(id.index)};
}

old::raft::SnapshotId to_old(const raft::SnapshotId& id) {
  return {to_old(id.last), id.tag};
}

raft::SnapshotId to_new(const old::raft::SnapshotId& id) {
  return {to_new(id.last), id.tag};
}

old::raft::Uuid to_old(const raft::Uuid& uuid) {
  return {uuid.high, uuid.low};
}

raft::Uuid to_new(const old::raft::Uuid& uuid) {
  return {uuid.high, uuid.low};
}

old::raft::Membership to_old(const raft::Membership& membership) {
  LEASEHOLD_ASSERT(!membership.settings);
  old::raft::Membership to;
  for (const raft::Member& member : membership.members) {
    to.members.push_back(
        {number<old::raft::NodeId>(member.id), to_old(member.uuid), member.address});
  }
  to.voters = numbers<old::raft::NodeId>(membership.voters);
  to.outgoing_voters = numbers<old::raft::NodeId>(membership.outgoing_voters);
  to.leaving = numbers<old::raft::NodeId>(membership.leaving);
  to.witnesses = numbers<old::raft::NodeId>(membership.witnesses);
  return to;
}

raft::Membership to_new(const old::raft::Membership& membership) {
  raft::Membership to;
  for (const old::raft::Member& member : membership.members) {
    to.members.push_back({number<raft::NodeId>(member.id), to_new(member.uuid), member.address});
  }
  to.voters = numbers<raft::NodeId>(membership.voters);
  to.outgoing_voters = numbers<raft::NodeId>(membership.outgoing_voters);
  to.leaving = numbers<raft::NodeId>(membership.leaving);
  to.witnesses = numbers<raft::NodeId>(membership.witnesses);
  return to;
}

old::lease::Timing to_old(const lease::Timing& timing) {
  return {timing.lease,          timing.heartbeat, timing.max_clock_drift_ppm,
          timing.max_round_trip, timing.margin,    timing.election_timeout};
}

lease::Timing to_new(const old::lease::Timing& timing) {
  return {timing.lease,          timing.heartbeat, timing.max_clock_drift_ppm,
          timing.max_round_trip, timing.margin,    timing.election_timeout};
}

old::raft::Entry to_old(const raft::Entry& entry) {
  return {to_old(entry.id), static_cast<old::raft::EntryKind>(entry.kind), to_old(entry.payload)};
}

raft::Entry to_new(const old::raft::Entry& entry) {
  return {to_new(entry.id), static_cast<raft::EntryKind>(entry.kind), to_new(entry.payload)};
}

std::vector<old::raft::Entry> to_old(const std::vector<raft::Entry>& entries) {
  std::vector<old::raft::Entry> to;
  for (const raft::Entry& entry : entries) to.push_back(to_old(entry));
  return to;
}

std::vector<raft::Entry> to_new(const std::vector<old::raft::Entry>& entries) {
  std::vector<raft::Entry> to;
  for (const old::raft::Entry& entry : entries) to.push_back(to_new(entry));
  return to;
}

// The codes are the same, in the same order.
old::Error to_old(const Error& error) {
  return {static_cast<old::ErrorCode>(error.code), error.message};
}

Error to_new(const old::Error& error) {
  return {static_cast<ErrorCode>(error.code), error.message};
}

// ---- What a start needs, and what a turn writes ----

raft::StoredPromise to_new(const old::raft::StoredPromise& promise) {
  return {number<raft::NodeId>(promise.holder), number<raft::Term>(promise.term), promise.duration};
}

raft::HardState to_new(const old::raft::HardState& state) {
  return {number<raft::Term>(state.term), number<raft::NodeId>(state.voted_for),
          state.vote_committed, to_new(state.promise)};
}

old::raft::HardState to_old(const raft::HardState& state) {
  old::raft::HardState to;
  to.term = number<old::raft::Term>(state.term);
  to.voted_for = number<old::raft::NodeId>(state.voted_for);
  to.vote_committed = state.vote_committed;
  to.promise.holder = number<old::raft::NodeId>(state.promise.holder);
  to.promise.term = number<old::raft::Term>(state.promise.term);
  to.promise.duration = state.promise.duration;
  return to;
}

raft::LogBase to_new(const old::raft::LogBase& base) {
  return {to_new(base.id), to_new(base.membership)};
}

raft::PersistBatch to_new(const old::raft::PersistBatch& batch) {
  raft::PersistBatch to;
  to.id = number<raft::ReadyId>(batch.id);
  if (batch.hard_state) to.hard_state = to_new(*batch.hard_state);
  if (batch.reset) to.reset = to_new(*batch.reset);
  if (batch.truncate_from) to.truncate_from = number<raft::Index>(*batch.truncate_from);
  to.entries = to_new(batch.entries);
  if (batch.cut) to.cut = to_new(*batch.cut);
  return to;
}

old::raft::InitialState to_old(const raft::InitialState& initial) {
  old::raft::InitialState to;
  to.hard_state = to_old(initial.hard_state);
  to.base = to_old(initial.base);
  to.base_membership = to_old(initial.base_membership);
  for (const raft::TermRun& run : initial.runs) {
    to.runs.push_back({number<old::raft::Term>(run.term), number<old::raft::Index>(run.first)});
  }
  to.last_index = number<old::raft::Index>(initial.last_index);
  for (const raft::MembershipAt& at : initial.memberships) {
    to.memberships.push_back({number<old::raft::Index>(at.index), to_old(at.membership)});
  }
  to.applied = number<old::raft::Index>(initial.applied);
  to.bytes = initial.bytes;
  return to;
}

old::node::DriverOptions to_old(const replica::DriverOptions& options) {
  old::node::DriverOptions to;
  to.core.group = number<old::raft::GroupId>(options.core.group);
  to.core.id = number<old::raft::NodeId>(options.core.id);
  to.core.uuid = to_old(options.core.uuid);
  to.core.incarnation = number<old::raft::Incarnation>(options.core.incarnation);
  to.core.timing = to_old(options.core.timing);
  to.core.seed = options.core.seed;
  to.core.witness = options.core.witness;
  to.core.inflight_messages_max = options.core.inflight_messages_max;
  to.core.inflight_bytes_max = options.core.inflight_bytes_max;
  to.core.commit_news_delay = options.core.commit_news_delay;
  to.core.promotion_lag_max = options.core.promotion_lag_max;
  to.cache_bytes_max = options.cache_bytes_max;
  to.append_bytes_max = options.append_bytes_max;
  to.apply_bytes_max = options.apply_bytes_max;
  to.applies_max = options.applies_max;
  to.proposals_max = options.proposals_max;
  to.proposal_bytes_max = options.proposal_bytes_max;
  to.command_bytes_max = options.command_bytes_max;
  to.reads_max = options.reads_max;
  to.uncommitted_bytes_max = options.uncommitted_bytes_max;
  to.log_tail_bytes = options.log_tail_bytes;
  to.log_cut_bytes = options.log_cut_bytes;
  to.log_age_max = options.log_age_max;
  to.log_held_bytes_max = options.log_held_bytes_max;
  to.snapshot_chunk_bytes = options.snapshot_chunk_bytes;
  to.snapshot_window_bytes = options.snapshot_window_bytes;
  to.snapshot_bytes_per_second = options.snapshot_bytes_per_second;
  to.snapshot_patience = options.snapshot_patience;
  to.snapshot_keep = options.snapshot_keep;
  to.chunks_storing_max = options.chunks_storing_max;
  to.cuts_waiting_max = options.cuts_waiting_max;
  return to;
}

raft::ReceivedChunk to_new(const old::raft::ReceivedChunk& received) {
  const old::raft::SnapshotChunk& chunk = received.chunk;
  raft::ReceivedChunk to;
  to.from = number<raft::NodeId>(received.from);
  to.chunk.term = number<raft::Term>(chunk.term);
  to.chunk.round = number<raft::Round>(chunk.round);
  to.chunk.lease = chunk.lease;
  to.chunk.id = to_new(chunk.id);
  to.chunk.membership = to_new(chunk.membership);
  to.chunk.size = chunk.size;
  to.chunk.offset = chunk.offset;
  to.chunk.data = to_new(chunk.data);
  return to;
}

// ---- Events of the core ----

namespace {

/// The reasons and outcomes have the same order in both.
struct EventOf {
  using What = decltype(raft::Event::what);

  What operator()(const old::raft::RoleChanged& e) const {
    return raft::RoleChanged{static_cast<raft::Role>(e.from), static_cast<raft::Role>(e.to),
                             static_cast<raft::RoleChangeReason>(e.reason)};
  }
  What operator()(const old::raft::LeaderKnown& e) const {
    return raft::LeaderKnown{number<raft::NodeId>(e.leader)};
  }
  What operator()(const old::raft::VoteGranted& e) const {
    return raft::VoteGranted{number<raft::NodeId>(e.candidate), e.pre_vote};
  }
  What operator()(const old::raft::VoteRefused& e) const {
    return raft::VoteRefused{number<raft::NodeId>(e.candidate), e.pre_vote,
                             static_cast<raft::VoteRefusal>(e.reason)};
  }
  What operator()(const old::raft::PromiseGiven& e) const {
    return raft::PromiseGiven{number<raft::NodeId>(e.holder),
                              instant<raft::PromiseInstant>(e.until)};
  }
  What operator()(const old::raft::LeaseGained& e) const {
    return raft::LeaseGained{instant<raft::HolderInstant>(e.end)};
  }
  What operator()(const old::raft::LeaseLost& e) const {
    return raft::LeaseLost{instant<raft::HolderInstant>(e.end)};
  }
  What operator()(const old::raft::SettingsDiffer& e) const {
    return raft::SettingsDiffer{number<raft::NodeId>(e.peer), e.theirs};
  }
  What operator()(const old::raft::LogCut& e) const {
    return raft::LogCut{number<raft::Index>(e.to)};
  }
  What operator()(const old::raft::SnapshotSending& e) const {
    return raft::SnapshotSending{number<raft::NodeId>(e.peer)};
  }
  What operator()(const old::raft::SnapshotInstalled& e) const {
    return raft::SnapshotInstalled{to_new(e.last)};
  }
  What operator()(const old::raft::TransferStarted& e) const {
    return raft::TransferStarted{number<raft::NodeId>(e.target)};
  }
  What operator()(const old::raft::TokenIssued& e) const {
    return raft::TokenIssued{number<raft::NodeId>(e.target), number<raft::Index>(e.last)};
  }
  What operator()(const old::raft::TokenUnused& e) const {
    return raft::TokenUnused{number<raft::NodeId>(e.issuer), number<raft::Index>(e.last)};
  }
  What operator()(const old::raft::TransferEnded& e) const {
    return raft::TransferEnded{number<raft::NodeId>(e.target),
                               static_cast<raft::TransferOutcome>(e.outcome)};
  }
  What operator()(const old::raft::MembershipChanged& e) const {
    return raft::MembershipChanged{number<raft::Index>(e.index), e.voters, e.outgoing_voters,
                                   e.learners};
  }
  What operator()(const old::raft::MembershipCommitted& e) const {
    return raft::MembershipCommitted{number<raft::Index>(e.index)};
  }
};

}  // namespace

raft::Event to_new(const old::raft::Event& event) {
  raft::Event to;
  to.group = number<raft::GroupId>(event.group);
  to.node = number<raft::NodeId>(event.node);
  to.term = number<raft::Term>(event.term);
  to.at = {instant<raft::HolderInstant>(event.at.holder),
           instant<raft::PromiseInstant>(event.at.promise)};
  to.what = std::visit(EventOf{}, event.what);
  return to;
}

// ---- Messages ----

std::optional<old::net::PeerMessage> to_old(const wire::PeerMessage& message) {
  wire::SendBuffer buffer;
  if (!wire::encode_message(message, kFrameBytesMax, buffer, kEarlierWireVersion)) {
    return std::nullopt;
  }
  const std::string bytes = bytes_of(buffer);
  old::wire::FrameReader reader(kFrameBytesMax);
  reader.feed(bytes);
  auto frame = reader.next();
  if (!frame || !frame.value()) return std::nullopt;
  auto decoded = old::wire::decode_message(*frame.value());
  if (!decoded) return std::nullopt;
  return std::move(decoded).value();
}

std::optional<wire::PeerMessage> to_new(const old::net::PeerMessage& message) {
  old::wire::SendBuffer buffer;
  if (!old::wire::encode_message(message, kFrameBytesMax, buffer)) return std::nullopt;
  const std::string bytes = bytes_of(buffer);
  wire::FrameReader reader(kFrameBytesMax);
  reader.feed(bytes);
  auto frame = reader.next();
  if (!frame || !frame.value()) return std::nullopt;
  auto decoded = wire::decode_message(*frame.value());
  if (!decoded) return std::nullopt;
  return std::move(decoded).value();
}

}  // namespace leasehold::mixed
