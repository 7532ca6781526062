// What no instant of a story may show, and histories that Raft excludes.

#include <leasehold/story/cluster.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::story {

NodeId Cluster::contradicted(Replica id, const std::vector<Term>& log) const {
  for (const auto& [other_id, other_node] : nodes_) {
    if (other_id == id.node) continue;
    const StoryReplica& other = other_node.of(id.group);
    bool in_common = false;
    for (std::size_t i = std::min(log.size(), other.log.size()); i > 0; --i) {
      const bool equal = other.log[i - 1].id.term == log[i - 1];
      if (in_common && !equal) return other_id;
      in_common = in_common || equal;
    }
  }
  return raft::kNobody;
}

// A core that hears from two leaders of one term stops with an assertion, and a forged append can
// make one of them. A core also stops when a leader older than a preset one has committed.
bool Cluster::leads(Replica id, Term term) {
  const Term preset = preset_terms_[id.group];
  if (term <= preset) {
    if (violation_.empty()) {
      violation_ = fmt::format(
          "{} leads term {}, but a log that was preset has an entry of term "
          "{}, whose leader a majority has voted for: preset their terms too",
          id.name(), term.value(), preset.value());
    }
    return false;
  }
  const NodeId known = leaders_.emplace(std::pair(id.group, term), id.node).first->second;
  if (known != id.node && violation_.empty()) {
    violation_ = fmt::format("{} and {} both lead term {}", node_name(known, id.group), id.name(),
                             term.value());
  }
  return known == id.node;
}

void Cluster::check() {
  for (const auto& entry : nodes_) {
    const StoryNode& node = entry.second;
    for (const StoryReplica& replica : node.replicas) {
      if (replica.core == nullptr || !node.up) continue;
      if (replica.core->role() == raft::Role::leader) leads(replica.id, replica.core->term());
    }
  }
  for (GroupId group = kFirstGroup; group.value() <= groups_; group = group.next()) {
    if (violation_.empty()) check_leases(group);
  }
}

void Cluster::check_leases(GroupId group) {
  const StoryReplica* holder = nullptr;
  for (const auto& entry : nodes_) {
    const StoryNode& node = entry.second;
    const StoryReplica& replica = node.of(group);
    if (!node.up || node.shown_end(replica) <= node.clock.at(now_).holder) continue;
    if (holder != nullptr) {
      violation_ = fmt::format("at {} {} and {} both hold a valid lease", format_time(now_),
                               holder->id.name(), replica.id.name());
      return;
    }
    holder = &replica;
  }
}

}  // namespace leasehold::story
