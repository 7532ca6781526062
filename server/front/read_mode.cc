#include <leasehold/base/assert.h>
#include <leasehold/server/front/read_mode.h>

#include <array>
#include <utility>

namespace leasehold::server {
namespace {

constexpr std::array<std::pair<std::string_view, ReadMode>, 4> kModes = {
    {{"lease", ReadMode::lease},
     {"quorum", ReadMode::quorum},
     {"log", ReadMode::log},
     {"stale", ReadMode::stale}}};

}  // namespace

const char* read_mode_name(ReadMode mode) {
  for (const auto& [name, value] : kModes) {
    if (value == mode) return name.data();
  }
  LEASEHOLD_UNREACHABLE();
}

std::optional<ReadMode> read_mode_named(std::string_view name) {
  for (const auto& [known, value] : kModes) {
    if (known == name) return value;
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
      return "the lease was valid, but the state machine had not applied the commit index yet";
    case ReadFallback::not_fresh:
      return "no linearizable read of this node was recent enough for the bound";
  }
  LEASEHOLD_UNREACHABLE();
}

}  // namespace leasehold::server
