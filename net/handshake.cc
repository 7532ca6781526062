#include <leasehold/base/fnv.h>
#include <leasehold/net/handshake.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::net {

namespace {

wire::Refusal refuse(wire::RefusalCode code, std::string reason) {
  return wire::Refusal{code, std::move(reason), wire::VersionRange{}};
}

wire::Refusal same_id(const wire::Hello& mine) {
  return refuse(wire::RefusalCode::same_id,
                fmt::format("node id {} is taken by the node with uuid {}: give each node its own "
                            "id",
                            mine.from.value(), uuid_text(mine.uuid)));
}

}  // namespace

// The text that is hashed, pinned:
//   cluster := "leasehold-cluster-1\n" length ":" name "\n" { id "=" length ":" address "\n" }
//              [ "generation " length ":" number "\n" ]
// with the members ascending by id and every number in decimal. The lengths keep two different
// inputs from giving one text.
std::uint64_t cluster_id(std::string_view name, std::vector<PeerAddress> peers,
                         std::uint64_t generation) {
  std::sort(peers.begin(), peers.end(), [](const PeerAddress& a, const PeerAddress& b) {
    return a.id != b.id ? a.id < b.id : a.address < b.address;
  });
  Fnv hash;
  const auto add_text = [&hash](std::string_view text) {
    hash.add(std::to_string(text.size()));
    hash.add(":");
    hash.add(text);
    hash.add("\n");
  };
  hash.add("leasehold-cluster-1\n");
  add_text(name);
  for (const PeerAddress& peer : peers) {
    hash.add(std::to_string(peer.id.value()));
    hash.add("=");
    add_text(peer.address);
  }
  if (generation != 0) {
    hash.add("generation ");
    add_text(std::to_string(generation));
  }
  return hash.value() == 0 ? 1 : hash.value();
}

Result<HostPort> parse_address(std::string_view address) {
  const auto refuse = [address](const char* why) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("address \"{}\": {}; write host:port, for example 127.0.0.1:7101",
                             address.substr(0, 256), why)};
  };
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return refuse("the port is missing");
  std::string_view host = address.substr(0, colon);
  const std::string_view digits = address.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return refuse("an IPv6 host stands in brackets, [::1]:7101");
  }
  if (host.empty() || host.size() > 253) return refuse("the host is missing or too long");
  for (const char c : host) {
    if (c <= ' ' || c > '~') return refuse("the host has a space or an unprintable character");
  }
  if (digits.empty() || digits.size() > 5) return refuse("the port is not a number up to 65535");
  std::uint32_t port = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return refuse("the port is not a number up to 65535");
    port = port * 10 + static_cast<std::uint32_t>(c - '0');
  }
  if (port > 65535) return refuse("the port is not a number up to 65535");
  return HostPort{std::string(host), static_cast<std::uint16_t>(port)};
}

std::string uuid_text(const raft::Uuid& uuid) {
  return fmt::format("{:016x}{:016x}", uuid.high, uuid.low);
}

namespace {

std::optional<wire::Refusal> judge_versions(const wire::Hello& mine, const wire::Hello& theirs) {
  if (mine.versions.max >= theirs.versions.min && theirs.versions.max >= mine.versions.min) {
    return std::nullopt;
  }
  return refuse(wire::RefusalCode::version,
                fmt::format("node {} speaks wire versions {} to {} and node {} {} to {}: upgrade "
                            "the older one",
                            mine.from.value(), mine.versions.min, mine.versions.max,
                            theirs.from.value(), theirs.versions.min, theirs.versions.max));
}

}  // namespace

std::optional<wire::Refusal> judge_introduction(const wire::Hello& mine,
                                                const wire::Hello& theirs) {
  using wire::RefusalCode;
  if (auto refusal = judge_versions(mine, theirs)) return refusal;
  if (!mine.cluster.empty() && !theirs.cluster.empty() && mine.cluster != theirs.cluster) {
    return refuse(
        RefusalCode::wrong_cluster,
        fmt::format("node {} is of cluster '{}', and node {} was started with '{}': "
                    "correct --cluster there",
                    mine.from.value(), mine.cluster, theirs.from.value(), theirs.cluster));
  }
  if (mine.cluster_id != 0 && theirs.cluster_id != 0 && mine.cluster_id != theirs.cluster_id) {
    return refuse(
        RefusalCode::wrong_cluster,
        fmt::format("node {} is of cluster {:016x} and node {} of cluster {:016x}: these "
                    "are two groups",
                    mine.from.value(), mine.cluster_id, theirs.from.value(), theirs.cluster_id));
  }
  if (theirs.from == mine.from) return same_id(mine);
  if (theirs.to != raft::kNobody && theirs.to != mine.from) {
    return refuse(RefusalCode::wrong_target,
                  fmt::format("this is node {}, not node {}: correct the address of that node",
                              mine.from.value(), theirs.to.value()));
  }
  return std::nullopt;
}

std::optional<wire::Refusal> judge_hello(const wire::Hello& mine, const wire::Hello& theirs) {
  using wire::RefusalCode;
  if (auto refusal = judge_versions(mine, theirs)) return refusal;
  if (mine.cluster_id != theirs.cluster_id) {
    return refuse(
        RefusalCode::wrong_cluster,
        fmt::format("node {} is of cluster {:016x} and node {} of cluster {:016x}: start "
                    "every node with the same cluster name and initial peers",
                    mine.from.value(), mine.cluster_id, theirs.from.value(), theirs.cluster_id));
  }
  if (theirs.from == mine.from) {
    if (theirs.uuid == mine.uuid && theirs.process == mine.process) {
      return refuse(RefusalCode::same_id,
                    fmt::format("node {} has reached itself: the address of a peer is its own",
                                mine.from.value()));
    }
    return same_id(mine);
  }
  if (theirs.to != mine.from) {
    return refuse(RefusalCode::wrong_target,
                  fmt::format("this is node {}, not node {}: correct the address of that peer",
                              mine.from.value(), theirs.to.value()));
  }
  if (mine.to != raft::kNobody && theirs.from != mine.to) {
    return refuse(RefusalCode::wrong_target,
                  fmt::format("node {} answers at the address of node {}: correct the address of "
                              "that peer",
                              theirs.from.value(), mine.to.value()));
  }
  return std::nullopt;
}

std::optional<wire::Refusal> PeerHistory::judge(const wire::Hello& hello, bool connected) const {
  using wire::RefusalCode;
  if (!last_) return std::nullopt;
  if (hello.uuid != last_->uuid) {
    if (!connected) return std::nullopt;
    return refuse(RefusalCode::duplicate_process,
                  fmt::format("node {} is connected under the uuid {}, not {}: two directories use "
                              "one node id",
                              hello.from.value(), uuid_text(last_->uuid), uuid_text(hello.uuid)));
  }
  if (hello.incarnation < last_->incarnation) {
    return refuse(
        RefusalCode::older_incarnation,
        fmt::format("start {} of node {} was replaced by start {}: stop the older process",
                    hello.incarnation.value(), hello.from.value(), last_->incarnation.value()));
  }
  if (hello.incarnation == last_->incarnation && hello.process != last_->process) {
    return refuse(RefusalCode::duplicate_process,
                  fmt::format("another process runs on a copy of the directory of node {}: stop "
                              "one of them and wipe its directory",
                              hello.from.value()));
  }
  return std::nullopt;
}

}  // namespace leasehold::net
