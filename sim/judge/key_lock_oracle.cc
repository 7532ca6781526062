#include <leasehold/sim/judge/key_lock_oracle.h>

#include <fmt/format.h>

namespace leasehold::sim {

void KeyLockOracle::holds(std::uint64_t client, const std::string& key, const std::string& value,
                          TrueInstant until) {
  Holder& holder = holders_[client];
  holder = {key, value, until};
  if (!believes(holder)) return;
  for (const auto& [other, held] : holders_) {
    if (other == client || held.key != key || !believes(held)) continue;
    world_.fail(
        "two_holders",
        fmt::format("client {} holds the key {} by the value {}, and so does client {} by {}",
                    client, key, value, other, held.value));
  }
  if (stands(holder)) return;
  world_.fail("lease_expired_early",
              fmt::format("client {} holds the key {} by the value {}, which was gone before",
                          client, key, value));
}

void KeyLockOracle::lost(std::uint64_t client) {
  const auto at = holders_.find(client);
  if (at == holders_.end()) return;
  if (believes(at->second)) {
    world_.fail(
        "lease_expired_early",
        fmt::format("client {} got the answer that it lost the key {}, but it still holds it",
                    client, at->second.key));
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
    world_.fail("lease_expired_early",
                fmt::format("entry {} of term {} ends the lock of {} which client {} holds by the "
                            "value {}",
                            id.index.value(), id.term.value(), holder.key, client, holder.value));
  }
}

}  // namespace leasehold::sim
