// Linearizable reads: by the lease, by a quorum round, and at a follower through its leader
// (dissertation 6.4).

#include <leasehold/base/assert.h>
#include <leasehold/raft/core_impl.h>

#include <algorithm>

namespace leasehold::raft {
namespace {

/// Remote reads that wait at a leader. A healthy follower has at most two pending.
constexpr std::size_t kRemoteReadsMax = 1024;

}  // namespace

void Core::Impl::read_index(Now now, std::uint64_t read, ReadMode mode) {
  if (mode == ReadMode::log) mode = ReadMode::quorum;  // the core proposes nothing for a read
  begin_input(now);
  if (options_.witness) {
    pending_.reads.push_back({read, std::nullopt, ReadBasis::leader, leader_});
  } else if (Leader* leader = as_leader()) {
    leader->add_read({read, kNobody, Incarnation(), mode, leader->rounds.newest().next()});
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

void Core::Impl::handle(NodeId from, const ReadIndexRequest& m) {
  Leader* leader = as_leader();
  const bool full = leader != nullptr && leader->remote_reads >= kRemoteReadsMax;
  if (leader == nullptr || full || options_.witness) {
    send_now(from, ReadIndexReply{m.incarnation, m.id, std::nullopt, leader_});
    return;
  }
  leader->listens(from, now_.promise);
  leader->add_read({m.id, from, m.incarnation, m.quorum ? ReadMode::quorum : ReadMode::lease,
                    leader->rounds.newest().next()});
}

void Core::Impl::answer(const LeaderRead& read, std::optional<Index> index, ReadBasis basis) {
  if (read.asker == kNobody) {
    pending_.reads.push_back({read.read, index, basis, leader_});
  } else {
    send_now(read.asker, ReadIndexReply{read.incarnation, read.read, index, leader_});
  }
}

// ---- The follower ----

// Also when the answer is overdue: the request or the answer was lost.
void Core::Impl::ask_leader(ReadMode mode) {
  FollowerReads& reads = follower_reads_[static_cast<std::size_t>(mode)];
  LEASEHOLD_ASSERT(leader_ != kNobody);
  LEASEHOLD_ASSERT(leader_ != options_.id);
  reads.asked.insert(reads.asked.end(), reads.waiting.begin(), reads.waiting.end());
  reads.waiting.clear();
  LEASEHOLD_ASSERT(!reads.asked.empty());
  reads.request = next_request_++;
  reads.sent = now_.promise;
  send_now(leader_,
           ReadIndexRequest{options_.incarnation, reads.request, mode == ReadMode::quorum});
}

void Core::Impl::handle(NodeId from, const ReadIndexReply& m) {
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

// This node lost the leadership, or its leader did: no read may wait forever.
void Core::Impl::refuse_reads() {
  if (Leader* leader = as_leader()) {
    leader->take_reads(
        [this](const LeaderRead& read) { answer(read, std::nullopt, ReadBasis::quorum); });
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
  LEASEHOLD_ASSERT(pending_reads() == 0);
}

}  // namespace leasehold::raft
