#include <leasehold/kv/command.h>
#include <leasehold/kv/local/lease_watch.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::kv {
namespace {

/// Leases that one entry ends, and entries of a round. An entry with 256 leases that have a few
/// keys each is applied in about a millisecond, and clients' commands come between.
constexpr std::size_t kEntryLeasesMax = 256;
constexpr std::size_t kRoundEntriesMax = 16;

}  // namespace

LeaseWatch::LeaseWatch(node::Group& node, kv::LeaseKeeper& keeper, lease::Duration timeout,
                       ExpiryRounds::Told told)
    : node_(node), keeper_(keeper), rounds_(node, timeout), told_(std::move(told)) {}

void LeaseWatch::look() {
  const replica::LeaseLook lease = node_.lease_view().look(node_.clock());
  std::optional<raft::Term> leads_in;
  if (lease.valid()) leads_in = lease.state.term;
  const std::size_t count = rounds_.under_way() ? 0 : kEntryLeasesMax * kRoundEntriesMax;
  const auto due = keeper_.look(leads_in, count);
  if (!due) return;  // the node is about to stop
  std::vector<Bytes> commands;
  for (std::size_t from = 0; from < due.value().size(); from += kEntryLeasesMax) {
    const std::size_t end = std::min(from + kEntryLeasesMax, due.value().size());
    const auto at = [&due](std::size_t which) {
      return due.value().begin() + static_cast<std::ptrdiff_t>(which);
    };
    auto command = kv::encode_command(kv::ExpireLeases{*leads_in, {at(from), at(end)}});
    if (command) commands.push_back(std::move(command).value());
  }
  // Keys that end by themselves do so all the time: that is not reported.
  const bool of_clients =
      std::any_of(due.value().begin(), due.value().end(),
                  [](const kv::SeenLease& seen) { return !grant::is_of_key(seen.id); });
  rounds_.propose(std::move(commands), of_clients ? told_ : ExpiryRounds::Told([](std::size_t) {}));
}

}  // namespace leasehold::kv
