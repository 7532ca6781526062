// What follows from an input at a leader: derived once, at the end of the input, in one order. A
// handler only records its input: an acknowledgement, a durable batch, a read, a round; Leader::due
// says which of them came.
//
//   1. the acknowledgements of all voters                 Leader::matched(), acknowledged()
//   2. the commit index                                   from the durable matches
//   3. the end of the lease                               from the rounds, once 2 is known
//   4. the base of check-quorum, the confirmed round      from the rounds
//   5. reads                                              from 2, 3 and 4
//   6. membership: what its commit means                  from 2; may change whose rounds count
//   7. transfer: the target has everything                from 1; gives the lease up
//
// What must hold is asserted last (core_invariants.cc).

#include <leasehold/base/assert.h>
#include <leasehold/raft/core_impl.h>

#include <algorithm>

namespace leasehold::raft {

void Core::Impl::derive() {
  if (Leader* leader = as_leader()) {
    derive_quorum(*leader);
    derive_reads(*leader);
    LEASEHOLD_ASSERT(!leader->due.matches && !leader->due.rounds && !leader->due.reads);
    settle_membership();
  }
  // The leader may have been removed, and have stepped down.
  if (Leader* leader = as_leader()) {
    // If the joint state was left just now, the lease rests on one half alone.
    derive_quorum(*leader);
    if (options_.witness) transfer_as_witness();
    advance_transfer();
    // What is new is under way in appends; a member that has let go has to bind again at once.
    if (leader->at_rest && !try_rest(*leader)) {
      leader->end_rest();
      leader->leave_out_none();
      leader->next_round =
          commit_ == log_.last_index() ? now_.promise : now_.promise + timing().heartbeat;
    }
  }
}

void Core::Impl::derive_quorum(Leader& leader) {
  if (!leader.due.matches && !leader.due.rounds) return;
  LEASEHOLD_ASSERT(leader.rounds.newest() > Round(0));  // the first began with the role
  const bool votes = own_seat();
  if (leader.due.matches) derive_commit(leader, votes);
  if (leader.due.rounds) derive_lease(leader, votes);
}

void Core::Impl::derive_commit(Leader& leader, bool votes) {
  leader.due.matches = false;
  // The own match is the durable prefix of the present log, never an index that a completion names.
  const std::optional<Index> own_match = votes ? std::optional<Index>(durable_) : std::nullopt;
  const std::optional<Index> match = leader.matched(log_.membership(), own_match);
  // Entries of earlier terms are committed by one of this term, never by counting (section 5.4.2,
  // figure 8).
  if (!match || *match <= commit_ || log_.term_at(*match) != hard_state_.term) return;
  advance_commit(*match);
  LEASEHOLD_ASSERT(commit_ == *match);
  leader.due.reads = true;
  // The token may be void from now on.
  if (leader.token_index.value() != 0) leader.due.rounds = true;
}

void Core::Impl::derive_lease(Leader& leader, bool votes) {
  leader.due.rounds = false;
  const QuorumAcknowledged reached = acknowledged(leader, votes);
  // A voter that lets a token pass is bound by no promise: what it has acknowledged counts again
  // once the token is void. A witness answers no reads, so it has no use for a lease.
  if (reached.lease_end && !leader.token_alive(commit_) && !options_.witness) {
    leader.lease.extend(*reached.lease_end);
  }
  if (reached.began && (!leader.base || *reached.began > *leader.base)) {
    leader.base = reached.began;
  }
  leader.confirmed = reached.round;
  LEASEHOLD_ASSERT(!leader.confirmed || *leader.confirmed <= leader.rounds.newest());
  LEASEHOLD_ASSERT(leader.base.has_value() || !reached.began);
}

// The index of a read is the commit index after an entry of the own term is committed and after the
// read arrived.
void Core::Impl::derive_reads(Leader& leader) {
  if (!leader.due.reads) return;
  leader.due.reads = false;
  if (leader.reads.empty() || commit_ < leader.first_index) return;
  LEASEHOLD_ASSERT(!options_.witness);  // it accepts no reads
  leader.take_answered_reads(shows_leases() && leader.lease.valid(now_.holder),
                             [this](const LeaderRead& read, bool by_lease) {
                               answer(read, commit_,
                                      by_lease ? ReadBasis::lease : ReadBasis::quorum);
                             });
}

}  // namespace leasehold::raft
