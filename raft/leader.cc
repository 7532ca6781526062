#include <leasehold/base/assert.h>
#include <leasehold/raft/leader.h>
#include <leasehold/raft/quorum.h>

#include <algorithm>
#include <tuple>

namespace leasehold::raft {

namespace {

constexpr Duration kListens = std::chrono::seconds(1);

/// A round, and when it began: a later round began no earlier.
struct Beginning {
  Round round;
  HolderInstant began;

  friend bool operator<(const Beginning& a, const Beginning& b) { return a.round < b.round; }
};

}  // namespace

Leader::Leader(NodeId own_id, Now now, Index first, const Membership& membership)
    : self(own_id),
      elected_at(now),
      first_index(first),
      sent_commit(first),
      beats_from(now.holder) {
  LEASEHOLD_ASSERT(self != kNobody);
  LEASEHOLD_ASSERT(first_index > Index(0));
  for (const Member& member : membership.members) {
    if (member.id == self) continue;
    add_peer(member.id, membership.is_witness(member.id), first_index, now.promise);
  }
  LEASEHOLD_ASSERT(progress.size() <= kMembersMax);
}

// ---- Peers ----

Progress* Leader::find(NodeId peer) {
  const auto found = progress.find(peer);
  return found != progress.end() ? &found->second : nullptr;
}

const Progress* Leader::find(NodeId peer) const {
  const auto found = progress.find(peer);
  return found != progress.end() ? &found->second : nullptr;
}

void Leader::add_peer(NodeId peer, bool witness, Index next_index, PromiseInstant now) {
  LEASEHOLD_ASSERT(peer != kNobody);
  LEASEHOLD_ASSERT(peer != self);
  const auto [at, added] = progress.add(peer);
  if (!added) return;
  at->second.witness = witness;
  at->second.next_index = next_index;
  at->second.heard = now;
}

void Leader::listens(NodeId peer, PromiseInstant now) {
  if (Progress* listener = find(peer)) listener->listens_until = now + kListens;
}

NodeId Leader::most_advanced(
    const std::vector<NodeId>& voters,
    const std::function<std::optional<HolderInstant>(const Progress&)>& heard) const {
  const auto rank = [&heard](const Progress& peer) {
    return std::make_tuple(peer.match_index, heard(peer), peer.acked_round->round);
  };
  const Progress* best = nullptr;
  NodeId best_id = kNobody;
  for (const NodeId id : voters) {
    const Progress* peer = find(id);
    if (peer == nullptr || !peer->acked_round || peer->witness) continue;
    if (best != nullptr && rank(*peer) <= rank(*best)) continue;
    best = peer;
    best_id = id;
  }
  LEASEHOLD_ASSERT(best_id != self);
  return best_id;
}

// ---- Rounds and acknowledgements ----

void Leader::begin_round(Now now, const lease::Timing& timing) {
  LEASEHOLD_ASSERT(now.holder >= elected_at.holder);
  rounds.begin(now.holder, timing);
  next_round = now.promise + timing.heartbeat;
  end_rest();
  due.rounds = true;
  LEASEHOLD_ASSERT(newest_round().duration == timing.lease);
}

void Leader::limit_rounds(const lease::Timing& timing) {
  rounds.limit(timing);
  for (auto& [id, peer] : progress) {
    if (peer.acked_round) peer.acked_round->limit(timing);
  }
  lease.revoke();
  due.rounds = true;
}

void Leader::void_rounds() {
  rounds.void_all();
  for (auto& [id, peer] : progress) {
    if (peer.acked_round) peer.acked_round->usable = Duration(0);
  }
  lease.revoke();
  due.rounds = true;
}

const lease::RoundStart& Leader::newest_round() const {
  const lease::RoundStart* newest = rounds.find(rounds.newest());
  LEASEHOLD_ASSERT(newest != nullptr);
  return *newest;
}

void Leader::acknowledge(Progress& peer, Round round) {
  const lease::RoundStart* start = rounds.find(round);
  if (start == nullptr) return;
  // The newest one counts, not the last to arrive.
  if (peer.acked_round && peer.acked_round->round >= start->round) return;
  peer.acked_round = *start;
  due.rounds = true;
  LEASEHOLD_ASSERT(peer.acked_round->round <= rounds.newest());
}

void Leader::bind(Progress& peer, const Uuid& directory, const lease::Epoch& epoch) {
  // Test: Shared.AnAnswerThatWasNotAskedForBindsNothing.
  if (!peer.bind_asked) return;
  // Test: Shared.ALateAnswerDoesNotBindAtAnEarlierEpoch.
  if (peer.bound && peer.bound->directory == directory && epoch <= peer.bound->epoch) return;
  peer.bound = BoundPromise{directory, epoch};
  due.rounds = true;
}

std::optional<Index> Leader::matched(const Membership& membership,
                                     std::optional<Index> own_match) const {
  return quorum_value<Index>(membership, [&](NodeId id) -> std::optional<Index> {
    if (id == self && own_match) return own_match;
    const Progress* peer = find(id);
    return peer != nullptr ? std::optional<Index>(peer->match_index) : std::nullopt;
  });
}

QuorumAcknowledged Leader::acknowledged(const Membership& membership, bool votes) const {
  using Values = std::tuple<std::optional<HolderInstant>, std::optional<Beginning>>;
  const lease::RoundStart& newest = newest_round();
  const auto values = [](const lease::RoundStart& ack) -> Values {
    return {ack.end(), Beginning{ack.round, ack.began}};
  };
  const auto values_of = [&](NodeId id) -> Values {
    if (id == self && votes) return values(newest);
    const Progress* peer = find(id);
    return peer != nullptr && peer->acked_round ? values(*peer->acked_round) : Values();
  };
  const auto [lease_end, beginning] =
      quorum_values<HolderInstant, Beginning>(membership, values_of);
  if (!beginning) return {};
  return {lease_end, beginning->began, beginning->round};
}

HolderInstant Leader::quorum_deadline() const {
  const HolderInstant since = base ? std::max(elected_at.holder, *base) : elected_at.holder;
  // When D has become shorter, what a quorum has acknowledged may be older than the new D: its own
  // D counts until a quorum has acknowledged a round of the new one.
  // Test: Settings.AShorterLeaseIsNoReasonToStepDown.
  const auto* acknowledged = confirmed ? rounds.find(*confirmed) : nullptr;
  const Duration own = acknowledged != nullptr ? acknowledged->duration : Duration(0);
  return since + std::max(newest_round().duration, own);
}

// ---- Reads ----

void Leader::add_read(const LeaderRead& read) {
  LEASEHOLD_ASSERT(reads.empty() || reads.back().round <= read.round);
  LEASEHOLD_ASSERT(remote_reads <= reads.size());
  reads.push_back(read);
  if (read.asker != kNobody) ++remote_reads;
  if (read.mode == ReadMode::lease) ++lease_reads;
  due.reads = true;
}

void Leader::forget(const LeaderRead& read) {
  if (read.asker != kNobody) {
    LEASEHOLD_ASSERT(remote_reads > 0);
    --remote_reads;
  }
  if (read.mode == ReadMode::lease) {
    LEASEHOLD_ASSERT(lease_reads > 0);
    --lease_reads;
  }
}

void Leader::leave_out_none() {
  for (auto& [id, peer] : progress) peer.rests = false;
}

void Leader::end_rest() {
  at_rest = false;
  lease_class = kNoClass;
}

bool Leader::wants_round() const {
  if (reads.empty() || reads.back().round <= rounds.newest()) return false;
  LEASEHOLD_ASSERT(rounds.newest() > Round(0));
  return confirmed == rounds.newest() || partial_round;
}

}  // namespace leasehold::raft
