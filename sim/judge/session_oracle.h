// Commands that are executed once, and the sessions in which clients repeat theirs.
#pragma once

#include <leasehold/replica/session_table.h>
#include <leasehold/sim/judge/ledger.h>

#include <cstdint>
#include <map>
#include <vector>

namespace leasehold::sim {

/// Judges, by the names that a violation carries:
///   exactly_once            a command was committed twice, or after its caller learned that it
///                           never will be
/// and of sessions, whose commands may be committed more than once:
///   executed_twice          a command of a session was executed twice
///   session_answer          an answer to a client is not true: its command was not executed, or
///                           was elsewhere, or the session existed all the time
///   session_expiry          a session was closed though a command came first, or before it had
///                           been idle for as long as it may
///   session_state           a state machine that has applied the same entries holds another state
class SessionOracle {
 public:
  SessionOracle(World& world, Ledger& ledger) : world_(world), ledger_(ledger) {}

  /// A committed command was executed, in the order of the log.
  void on_executed(raft::LogId id, const RegisterMachine::Command& command,
                   const RegisterMachine::Done& done);
  /// The callers of these commands learned that they were not and will not be executed.
  void check_dropped(const std::vector<std::uint64_t>& values);
  /// The client learned that the write of `value` was executed at `index`.
  void check_executed(std::uint64_t value, raft::Index index);
  /// The client learned that there is no such session.
  void check_no_session(replica::SessionId id);
  /// Every state machine holds what the committed entries up to its applied index make.
  void check_states();

  std::uint64_t expired() const { return expired_; }

 private:
  /// What is known of the open sessions without their table.
  struct Seen {
    std::uint64_t activity = 0;
    TrueInstant since;  ///< when the newest command that names it was committed
  };
  void check_expiry(raft::LogId id, const RegisterMachine::Command& command, bool gone);

  World& world_;
  Ledger& ledger_;
  /// By the value that it writes, which no other command does: where a command was committed, or,
  /// of a session, executed.
  std::map<std::uint64_t, raft::Index> executed_;
  std::map<replica::SessionId, Seen> sessions_;
  std::uint64_t expired_ = 0;
};

}  // namespace leasehold::sim
