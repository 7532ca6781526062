// Linearizable reads: by the lease, by a quorum round, and at a follower through its leader
// (dissertation 6.4).

#include <leasehold/base/assert.h>
#include <leasehold/raft/core.h>
#include <leasehold/raft/quorum.h>

#include <algorithm>

namespace leasehold::raft {
namespace {

/// Remote reads that wait at a leader. A healthy follower has at most two out.
constexpr std::size_t kRemoteReadsMax = 1024;

}  // namespace

void Core::read_index(Now now, std::uint64_t read, ReadMode mode) {
  begin_input(now);
  if (options_.witness) {
    pending_.reads.push_back({read, std::nullopt, ReadBasis::leader, leader_});
  } else if (Leader* leader = as_leader()) {
    leader->reads.push_back({read, kNobody, Incarnation(), mode, leader->rounds.newest().next()});
    answer_leader_reads();
  } else if (leader_ == kNobody) {
    pending_.reads.push_back({read, std::nullopt, ReadBasis::leader, kNobody});
  } else {
    FollowerReads& reads = follower_reads_[static_cast<std::size_t>(mode)];
    reads.waiting.push_back(read);
    if (reads.asked.empty()) ask_leader(mode);
  }
  end_input();
}

// ---- The leader ----

void Core::handle(NodeId from, const ReadIndexRequest& m) {
  Leader* leader = as_leader();
  const bool full = leader != nullptr && leader->remote_reads >= kRemoteReadsMax;
  if (leader == nullptr || full || options_.witness) {
    send_now(from, ReadIndexReply{m.incarnation, m.id, std::nullopt, leader_});
    return;
  }
  note_listener(from);
  ++leader->remote_reads;
  leader->reads.push_back({m.id, from, m.incarnation, m.quorum ? ReadMode::quorum : ReadMode::lease,
                           leader->rounds.newest().next()});
  answer_leader_reads();
}

// At the end of a turn: one round serves everything that arrived in it. While one is out the next
// one waits for its quorum (or for the heartbeat), so that reads cannot flood the peers.
void Core::maybe_begin_read_round() {
  Leader* leader = as_leader();
  const Round newest = leader->rounds.newest();
  const bool wanted = std::any_of(leader->reads.begin(), leader->reads.end(),
                                  [newest](const LeaderRead& read) { return read.round > newest; });
  if (!wanted) return;
  const auto acked = [this, leader, newest](NodeId id) -> std::optional<Round> {
    if (id == options_.id && own_seat()) return newest;
    const auto progress = leader->progress.find(id);
    if (progress == leader->progress.end() || !progress->second.acked_round) return std::nullopt;
    return progress->second.acked_round->round;
  };
  if (quorum_value<Round>(log_.membership(), acked) != newest) return;
  begin_round();
  answer_leader_reads();
}

// The index of a read is the commit index after an entry of the own term is committed and after the
// read arrived.
void Core::answer_leader_reads() {
  Leader* leader = as_leader();
  if (leader == nullptr || leader->reads.empty() || commit_ < leader->first_index) return;
  const bool lease_valid = leader->lease.valid(now_.holder);
  const auto acked = [this, leader](NodeId id) -> std::optional<Round> {
    if (id == options_.id && own_seat()) return leader->rounds.newest();
    const auto progress = leader->progress.find(id);
    if (progress == leader->progress.end() || !progress->second.acked_round) return std::nullopt;
    return progress->second.acked_round->round;
  };
  const std::optional<Round> confirmed = quorum_value<Round>(log_.membership(), acked);
  const auto waits = [&](const LeaderRead& read) {
    if (lease_valid && read.mode == ReadMode::lease) {
      answer(read, commit_, ReadBasis::lease);
    } else if (confirmed && *confirmed >= read.round) {
      answer(read, commit_, ReadBasis::quorum);
    } else {
      return true;
    }
    return false;
  };
  auto& reads = leader->reads;
  reads.erase(std::remove_if(reads.begin(), reads.end(),
                             [&waits](const LeaderRead& read) { return !waits(read); }),
              reads.end());
}

void Core::answer(const LeaderRead& read, std::optional<Index> index, ReadBasis basis) {
  if (read.asker == kNobody) {
    pending_.reads.push_back({read.read, index, basis, leader_});
  } else {
    --as_leader()->remote_reads;
    send_now(read.asker, ReadIndexReply{read.incarnation, read.read, index, leader_});
  }
}

// ---- The follower ----

// Also when the answer is overdue: the request or the answer was lost.
void Core::ask_leader(ReadMode mode) {
  FollowerReads& reads = follower_reads_[static_cast<std::size_t>(mode)];
  LEASEHOLD_ASSERT(leader_ != kNobody);
  reads.asked.insert(reads.asked.end(), reads.waiting.begin(), reads.waiting.end());
  reads.waiting.clear();
  reads.request = next_request_++;
  reads.sent = now_.promise;
  send_now(leader_,
           ReadIndexRequest{options_.incarnation, reads.request, mode == ReadMode::quorum});
}

void Core::handle(NodeId from, const ReadIndexReply& m) {
  if (m.incarnation != options_.incarnation || from != leader_) return;
  for (std::size_t i = 0; i < follower_reads_.size(); ++i) {
    FollowerReads& reads = follower_reads_[i];
    if (reads.asked.empty() || reads.request != m.id) continue;
    for (const std::uint64_t read : reads.asked) {
      pending_.reads.push_back({read, m.index, ReadBasis::leader, m.index ? from : m.leader});
    }
    reads.asked.clear();
    if (!reads.waiting.empty()) ask_leader(static_cast<ReadMode>(i));
    return;
  }
}

// Leadership is lost, this node's or the one that it followed: nothing that waits may wait for
// ever.
void Core::refuse_reads() {
  if (Leader* leader = as_leader()) {
    for (const LeaderRead& read : leader->reads) answer(read, std::nullopt, ReadBasis::quorum);
    leader->reads.clear();
  }
  for (FollowerReads& reads : follower_reads_) {
    for (const auto* list : {&reads.asked, &reads.waiting}) {
      for (const std::uint64_t read : *list) {
        pending_.reads.push_back({read, std::nullopt, ReadBasis::leader, leader_});
      }
    }
    reads.asked.clear();
    reads.waiting.clear();
  }
}

}  // namespace leasehold::raft
