#include <leasehold/sim/judge/key_lock_oracle.h>

namespace leasehold::sim {

void KeyLockOracle::holds(std::uint64_t client, const std::string& key, const std::string& value,
                          TrueInstant until) {
  Holder& holder = holders_[client];
  holder = {key, value, until};
  if (!believes(holder)) return;
  for (const auto& [other, held] : holders_) {
    if (other == client || held.key != key || !believes(held)) continue;
    world_.fail("two_holders", "client " + std::to_string(client) + " holds the key " + key +
                                   " by the value " + value + ", and so does client " +
                                   std::to_string(other) + " by " + held.value);
  }
  if (stands(holder)) return;
  world_.fail("lease_expired_early", "client " + std::to_string(client) + " holds the key " + key +
                                         " by the value " + value + ", which was gone before");
}

void KeyLockOracle::lost(std::uint64_t client) {
  const auto at = holders_.find(client);
  if (at == holders_.end()) return;
  if (believes(at->second)) {
    world_.fail("lease_expired_early", "client " + std::to_string(client) +
                                           " is told that the key " + at->second.key +
                                           " is not its own any more, which it holds");
  }
  holders_.erase(at);
}

bool KeyLockOracle::stands(const Holder& holder) const {
  const auto at = newest_.cells.find(holder.key);
  return at != newest_.cells.end() && at->second.bytes.view() == holder.value;
}

void KeyLockOracle::after(raft::LogId id) {
  for (const auto& [client, holder] : holders_) {
    if (!believes(holder) || stands(holder)) continue;
    world_.fail("lease_expired_early", "entry " + std::to_string(id.index.value()) + " of term " +
                                           std::to_string(id.term.value()) + " ends the lock of " +
                                           holder.key + " which client " + std::to_string(client) +
                                           " holds by the value " + holder.value);
  }
}

}  // namespace leasehold::sim
