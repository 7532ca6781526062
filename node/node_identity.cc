#include <leasehold/net/handshake.h>
#include <leasehold/net/tcp_introduction.h>
#include <leasehold/node/node_identity.h>
#include <leasehold/node/node_restored.h>
#include <leasehold/storage/folder.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace leasehold::node {

namespace {

Error invalid(std::string message) {
  return Error{ErrorCode::invalid_argument, std::move(message)};
}

}  // namespace

Result<std::optional<storage::FolderMark>> load_mark(const std::string& data_dir) {
  const std::string path = fmt::format("{}/log/{}", data_dir, storage::kMarkName);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<storage::FolderMark>();
    return Error{ErrorCode::io,
                 fmt::format("cannot open {}: {}", path, std::generic_category().message(errno))};
  }
  std::string bytes(storage::kMarkBytes + 1, '\0');
  const ssize_t length = ::read(file, bytes.data(), bytes.size());
  const int code = errno;
  ::close(file);
  if (length < 0) {
    return Error{ErrorCode::io,
                 fmt::format("cannot read {}: {}", path, std::generic_category().message(code))};
  }
  bytes.resize(static_cast<std::size_t>(length));
  auto mark = storage::decode_mark(bytes);
  if (!mark.ok()) {
    return Error{mark.error().code, fmt::format("{}: {}", path, mark.error().message)};
  }
  return std::optional<storage::FolderMark>(std::move(mark).value());
}

Result<std::optional<storage::FolderMark>> load_mark(const storage::Disk& disk) {
  const auto bytes = disk.load(std::string(storage::kMarkName), storage::kMarkBytes + 1);
  if (!bytes.ok()) return bytes.error();
  if (!bytes.value()) return std::optional<storage::FolderMark>();
  auto mark = storage::decode_mark(*bytes.value());
  if (!mark.ok()) {
    return Error{mark.error().code, fmt::format("{}: {}", disk.path(), mark.error().message)};
  }
  return std::optional<storage::FolderMark>(std::move(mark).value());
}

Result<void> validate_options(const NodeOptions& options) {
  if (options.id == raft::kNobody) return invalid("node id 0: choose a number from 1 on");
  if (options.data_dir.empty()) return invalid("no data directory given");
  std::set<raft::NodeId> ids;
  for (const Peer& peer : options.peers) {
    const std::uint64_t id = peer.id.value();
    if (peer.id == raft::kNobody) return invalid("peers: id 0: choose numbers from 1 on");
    if (!ids.insert(peer.id).second) {
      return invalid(fmt::format("peers: id {} is there twice", id));
    }
    const auto address = net::parse_address(peer.address);
    if (!address.ok()) return invalid(fmt::format("peers: {}: {}", id, address.error().message));
  }
  if (!options.peers.empty() && ids.count(options.id) == 0) {
    return invalid(fmt::format(
        "peers: node {} itself is not among them; list every initial member, this node included",
        options.id.value()));
  }
  for (const std::string& address : options.join) {
    const auto parsed = net::parse_address(address);
    if (!parsed.ok()) return invalid("join: " + parsed.error().message);
  }
  if (options.peer_streams != nullptr && !options.deputy.empty()) {
    return invalid("a deputy sends datagrams, and the streams of the program carry none");
  }
  if (options.witness && !options.peers.empty()) {
    return invalid(
        "a witness cannot be an initial member: form the group without it, start the witness with "
        "the addresses of members to join, and add it");
  }
  if (auto limits = options.limits.validate(); !limits.ok()) return limits;
  return options.timing.validate();
}

Result<void> may_join(const NodeOptions& options) {
  if (options.join.empty() && options.cluster_id == 0) {
    return invalid(
        fmt::format("{}: the group of this directory has not formed yet: give the initial peers",
                    options.data_dir));
  }
  if (!options.listen.empty()) return {};
  return invalid(
      "without initial peers this node joins a group, and needs an address for its peer port: give "
      "the initial peers (serve --peers), or the members to join and where this node listens "
      "(serve --join, --peer-listen)");
}

Result<std::string> own_address(const NodeOptions& options,
                                const std::optional<raft::InitialState>& log,
                                const std::vector<raft::Member>& initial) {
  if (log) {
    const raft::Membership& newest =
        log->memberships.empty() ? log->base_membership : log->memberships.back().membership;
    if (const raft::Member* member = newest.find(options.id)) return member->address;
  }
  for (const raft::Member& member : initial) {
    if (member.id == options.id) return member.address;
  }
  if (!options.listen.empty()) return options.listen;
  return invalid(
      fmt::format("{}: no member's address is known for this node: say where its peer port listens",
                  options.data_dir));
}

Result<std::optional<std::uint64_t>> known_cluster_id(const NodeOptions& options,
                                                      const storage::Disk* disk) {
  if (!options.peers.empty() && !options.join.empty()) {
    return invalid("initial peers and nodes to join are given: a node forms a group, or joins one");
  }
  if (!options.peers.empty()) {
    std::vector<net::PeerAddress> peers;
    for (const Peer& peer : options.peers) peers.push_back({peer.id, peer.address});
    const auto restored = load_restored(options.data_dir);
    if (!restored.ok()) return restored.error();
    return std::optional(net::cluster_id(options.cluster, std::move(peers),
                                         restored.value() ? restored.value()->generation : 0));
  }
  const auto mark = disk != nullptr ? load_mark(*disk) : load_mark(options.data_dir);
  if (!mark.ok()) return mark.error();
  if (mark.value()) return std::optional(mark.value()->cluster_id);
  if (options.cluster_id != 0) return std::optional(options.cluster_id);
  if (options.join.empty()) {
    return invalid(
        fmt::format("{} is new: give the initial peers of a new group, this node "
                    "included, or the addresses of members of a group to join",
                    options.data_dir));
  }
  return std::optional<std::uint64_t>();
}

Result<std::uint64_t> ask_cluster_id(const NodeOptions& options) {
  const auto guard = net::PeerGuard::load(options.peer_security);
  if (!guard.ok()) return guard.error();
  std::optional<Error> problem;
  for (const std::string& address : options.join) {
    net::Introduction introduction;
    introduction.address = address;
    introduction.hello.from = options.id;
    introduction.hello.cluster = options.cluster;
    introduction.hello.address = options.listen;
    introduction.hello.purpose = wire::Purpose::introduction;
    introduction.guard = guard.value();
    introduction.cluster = options.cluster;
    introduction.streams = options.peer_streams;
    const Result<wire::Hello> answer = net::introduce_and_wait(std::move(introduction));
    if (answer.ok() && answer.value().cluster_id != 0) return answer.value().cluster_id;
    if (answer.ok()) continue;
    // A refusal tells more than a node that does not answer.
    if (!problem || problem->code == ErrorCode::unavailable) problem = answer.error();
    if (answer.error().code != ErrorCode::unavailable) break;
  }
  if (problem) return *problem;
  return Error{ErrorCode::unavailable, "no node that was asked knows the cluster's id"};
}

}  // namespace leasehold::node
