#include <leasehold/sim/judge/session_oracle.h>
#include <leasehold/sim/judge/words.h>

namespace leasehold::sim {

void SessionOracle::on_executed(raft::LogId id, const RegisterMachine::Command& command,
                                const RegisterMachine::Done& done) {
  using Kind = RegisterMachine::Kind;
  const auto number = RegisterMachine::decode_number(done.result.view());
  if (command.kind == Kind::open && number && *number != 0) {
    sessions_[replica::SessionId(*number)] = {0, world_.queue.now()};
  }
  if (command.kind == Kind::expire) check_expiry(id, command, number && *number != 0);
  if (command.kind == Kind::once) {
    const auto session = sessions_.find(command.session);
    if (session != sessions_.end()) {
      session->second = {session->second.activity + 1, world_.queue.now()};
    }
  }
  if (!done.wrote) return;
  const auto [known, fresh] = executed_.emplace(command.value, id.index);
  if (fresh) return;
  const bool once = command.kind == Kind::once;
  world_.fail(once ? "executed_twice" : "exactly_once",
              id_text(id) + (once ? " executes" : " holds") + " the command that was " +
                  (once ? "executed" : "committed") + " at " +
                  std::to_string(known->second.value()) + " already: value " +
                  std::to_string(command.value));
}

// A clock of the nodes shows at most (1 + drift) of the time that has passed.
void SessionOracle::check_expiry(raft::LogId id, const RegisterMachine::Command& command,
                                 bool gone) {
  const auto session = sessions_.find(command.session);
  if (!gone || session == sessions_.end()) return;
  const Seen seen = session->second;
  sessions_.erase(session);
  ++expired_;
  const std::int64_t million = 1'000'000;
  const Duration idle_max = world_.plan.sessions.idle_max;
  const Duration shortest = idle_max / (million + world_.plan.drift_ppm_max) * million;
  const bool early = world_.queue.now() - seen.since < shortest;
  if (seen.activity == command.activity && !early) return;
  world_.fail("session_expiry", id_text(id) + " closes session " +
                                    std::to_string(command.session.value()) +
                                    (early ? ", which has not been idle for long enough"
                                           : " after a command that its leader had not seen"));
}

void SessionOracle::check_dropped(const std::vector<std::uint64_t>& values) {
  for (const std::uint64_t value : values) {
    const auto found = executed_.find(value);
    if (found == executed_.end()) continue;
    world_.fail("exactly_once", "the write of value " + std::to_string(value) +
                                    " was refused as never executed, and is committed at " +
                                    std::to_string(found->second.value()));
    return;
  }
}

void SessionOracle::check_executed(std::uint64_t value, raft::Index index) {
  const auto found = executed_.find(value);
  if (found != executed_.end() && found->second == index) return;
  world_.fail(
      "session_answer",
      "a client was told that its write of value " + std::to_string(value) + " was executed at " +
          std::to_string(index.value()) + ", and it was executed " +
          (found == executed_.end() ? "never" : "at " + std::to_string(found->second.value())));
}

void SessionOracle::check_no_session(replica::SessionId id) {
  if (sessions_.count(id) == 0) return;
  world_.fail("session_answer", "a client was told that there is no session " +
                                    std::to_string(id.value()) + ", and nobody has closed it");
}

void SessionOracle::check_states() {
  for (const SimNode* node : ledger_.nodes()) {
    const RegisterMachine::State& state = node->machine().present();
    if (state.applied > ledger_.last() || state == ledger_.state_at(state.applied)) continue;
    world_.fail("session_state", name(*node) + " has applied up to " +
                                     std::to_string(state.applied.value()) +
                                     " and holds something else than was committed");
  }
}

}  // namespace leasehold::sim
