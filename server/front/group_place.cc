#include <leasehold/server/front/group_place.h>
#include <leasehold/server/front/replica_number.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <utility>

namespace leasehold::server {

GroupPlace::Nodes GroupPlace::nodes() const {
  const std::lock_guard lock(mutex_);
  return nodes_;
}

bool GroupPlace::set_nodes(Nodes nodes) {
  const std::lock_guard lock(mutex_);
  if (nodes == nodes_) return false;
  nodes_ = std::move(nodes);
  return true;
}

std::optional<GroupPlace::Nodes> parse_nodes(std::string_view text) {
  GroupPlace::Nodes nodes;
  for (;;) {
    const std::size_t end = text.find(',');
    const auto number = parse_integer(text.substr(0, end));
    const bool fits =
        number && *number >= 1 && static_cast<std::uint64_t>(*number) < kNodeNumbersEnd;
    if (!fits) return std::nullopt;
    nodes.emplace_back(static_cast<std::uint64_t>(*number));
    if (end == std::string_view::npos) return nodes;
    text.remove_prefix(end + 1);
  }
}

std::string moved_text(const GroupPlace& place, std::size_t group, std::uint32_t slot,
                       const std::map<raft::NodeId, std::string>& addresses) {
  const auto found = addresses.find(place.target());
  if (found != addresses.end()) return fmt::format("MOVED {} {}", slot, found->second);
  return fmt::format(
      "CLUSTERDOWN this node has no replica of group {}, which has slot {}, and knows no client "
      "address of a node that has one; the command was not executed, ask another node. See "
      "--client-addresses",
      group, slot);
}

}  // namespace leasehold::server
