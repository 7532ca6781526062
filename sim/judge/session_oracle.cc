#include <leasehold/sim/judge/session_oracle.h>
#include <leasehold/sim/judge/words.h>

#include <fmt/format.h>

#include <algorithm>

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
              fmt::format("{}{} the command that was {} at {} already: value {}", id_text(id),
                          once ? " executes" : " holds", once ? "executed" : "committed",
                          known->second.value(), command.value));
}

// A clock of the nodes shows at most (1 + drift) of the time that has passed. While lease reads are
// off, the drift may be larger than the group's bound.
void SessionOracle::check_expiry(raft::LogId id, const RegisterMachine::Command& command,
                                 bool gone) {
  const auto session = sessions_.find(command.session);
  if (!gone || session == sessions_.end()) return;
  const Seen seen = session->second;
  sessions_.erase(session);
  ++expired_;
  const std::int64_t million = 1'000'000;
  const Duration idle_max = world_.plan.sessions.idle_max;
  const std::int64_t drift_ppm =
      std::max(world_.plan.drift_ppm_max, world_.plan.settings.drift_ppm_without_leases);
  const Duration shortest = idle_max / (million + drift_ppm) * million;
  const bool early = world_.queue.now() - seen.since < shortest;
  if (seen.activity == command.activity && !early) return;
  world_.fail("session_expiry",
              fmt::format("{} closes session {}{}", id_text(id), command.session.value(),
                          early ? ", which has not been idle for long enough"
                                : " after a command that its leader had not seen"));
}

void SessionOracle::check_dropped(const std::vector<std::uint64_t>& values) {
  for (const std::uint64_t value : values) {
    const auto found = executed_.find(value);
    if (found == executed_.end()) continue;
    world_.fail(
        "exactly_once",
        fmt::format("the write of value {} was refused as never executed, and is committed at {}",
                    value, found->second.value()));
    return;
  }
}

void SessionOracle::check_executed(std::uint64_t value, raft::Index index) {
  const auto found = executed_.find(value);
  if (found != executed_.end() && found->second == index) return;
  world_.fail("session_answer",
              fmt::format("the answer to a client says that its write of value {} was executed "
                          "at {}, but it was executed {}",
                          value, index.value(),
                          found == executed_.end() ? "never"
                                                   : fmt::format("at {}", found->second.value())));
}

void SessionOracle::check_no_session(replica::SessionId id) {
  if (sessions_.count(id) == 0) return;
  world_.fail("session_answer",
              fmt::format("the answer to a client says that there is no session {}, but it is open",
                          id.value()));
}

void SessionOracle::check_states() {
  for (const SimNode* node : ledger_.nodes()) {
    const RegisterMachine::State& state = node->machine().present();
    if (state.applied > ledger_.last() || state == ledger_.state_at(state.applied)) continue;
    world_.fail("session_state",
                fmt::format("{} has applied up to {} and holds something else than was committed",
                            name(*node), state.applied.value()));
  }
}

}  // namespace leasehold::sim
