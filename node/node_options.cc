#include <leasehold/net/handshake.h>
#include <leasehold/node/node_options.h>

#include <set>
#include <string>
#include <utility>

namespace leasehold::node {

Result<void> validate(const NodeOptions& options) {
  const auto invalid = [](std::string message) {
    return Error{ErrorCode::invalid_argument, std::move(message)};
  };
  if (options.id == raft::kNobody) return invalid("node id 0: choose a number from 1 on");
  if (options.data_dir.empty()) return invalid("no data directory given");
  std::set<raft::NodeId> ids;
  for (const Peer& peer : options.peers) {
    const std::string number = std::to_string(peer.id.value());
    if (peer.id == raft::kNobody) return invalid("peers: id 0: choose numbers from 1 on");
    if (!ids.insert(peer.id).second) return invalid("peers: id " + number + " is there twice");
    const auto address = net::parse_address(peer.address);
    if (!address.ok()) return invalid("peers: " + number + ": " + address.error().message);
  }
  if (ids.count(options.id) == 0) {
    return invalid("peers: node " + std::to_string(options.id.value()) +
                   " itself is not among them; list every initial member, this node included");
  }
  return options.timing.validate();
}

}  // namespace leasehold::node
