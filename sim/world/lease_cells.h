// Keys and the leases that clients hold, as the production store evaluates them, in a form that the
// simulator can copy and compare.
#pragma once

#include <leasehold/grant/lease_table.h>
#include <leasehold/kv/evaluate.h>
#include <leasehold/kv/events.h>
#include <leasehold/kv/leases.h>
#include <leasehold/kv/store.h>
#include <leasehold/raft/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::sim {

struct LeaseCells {
  std::map<std::string, kv::Value, std::less<>> cells;
  /// The largest token that has written a key.
  std::map<std::string, grant::FencingToken, std::less<>> fences;
  grant::LeaseTable table;
  std::uint64_t revision = 0;
  /// How often a client was refused the name of a lease, in this process: not part of the state.
  std::map<grant::LeaseId, std::uint32_t> wants;

  /// One of the store's commands, an entry of `term`; not one of sessions. Returns its reply.
  /// Appends to `told` what watchers have to learn.
  Bytes apply(raft::Term term, std::string_view command, std::vector<kv::Revision>* told = nullptr);
  /// All leases, for a kv::LeaseKeeper.
  kv::LeaseChanges changes() const;

  std::string encode() const;
  static std::optional<LeaseCells> decode(std::string_view bytes);
  friend bool operator==(const LeaseCells& a, const LeaseCells& b) {
    return a.encode() == b.encode();
  }
};

}  // namespace leasehold::sim
