#include <leasehold/base/assert.h>
#include <leasehold/server/front/read_policy.h>

namespace leasehold::server {

const char* read_policy_name(const ReadPolicy& policy) {
  if (policy.stale_bound) return "stale";
  switch (policy.mode) {
    case raft::ReadMode::lease: return "lease";
    case raft::ReadMode::quorum: return "quorum";
    case raft::ReadMode::log: return "log";
  }
  LEASEHOLD_UNREACHABLE();
}

std::optional<ReadPolicy> read_policy_named(std::string_view name) {
  for (const ReadPolicy& policy :
       {ReadPolicy{raft::ReadMode::lease}, ReadPolicy{raft::ReadMode::quorum},
        ReadPolicy{raft::ReadMode::log}, ReadPolicy{raft::ReadMode::lease, lease::Duration(0)}}) {
    if (name == read_policy_name(policy)) return policy;
  }
  return std::nullopt;
}

const char* read_end_name(ReadEnd end) {
  switch (end) {
    case ReadEnd::none: return "none";
    case ReadEnd::under_way: return "under-way";
    case ReadEnd::lease: return "lease";
    case ReadEnd::lease_after_wait: return "lease-after-wait";
    case ReadEnd::lease_of_node: return "lease-of-node";
    case ReadEnd::quorum: return "quorum";
    case ReadEnd::leader: return "leader";
    case ReadEnd::log: return "log";
    case ReadEnd::stale: return "stale";
    case ReadEnd::refused: return "refused";
  }
  LEASEHOLD_UNREACHABLE();
}

const char* read_fallback_text(ReadFallback fallback) {
  switch (fallback) {
    case ReadFallback::none: return "";
    case ReadFallback::lease_reads_off: return "lease reads are off on this node (--lease-reads)";
    case ReadFallback::no_lease: return "this node holds no lease";
    case ReadFallback::lease_over: return "the lease of this node had ended";
    case ReadFallback::apply_lags:
      return "the lease was valid, but the state machine did not show yet what the read has to see";
    case ReadFallback::not_fresh:
      return "no linearizable read of this node was recent enough for the bound";
  }
  LEASEHOLD_UNREACHABLE();
}

}  // namespace leasehold::server
