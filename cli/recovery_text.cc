#include <leasehold/cli/recovery_file.h>
#include <leasehold/cli/recovery_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace leasehold::cli {
namespace {

std::string nodes_text(const std::vector<raft::Member>& members) {
  std::string out;
  for (const raft::Member& member : members) {
    out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", member.id.value(), member.address);
  }
  return out;
}

std::string lost_writes_text(const node::Survivor& source, const node::RecoveryPlan& plan) {
  const std::uint64_t last = source.last.index.value();
  if (!plan.may_lose) {
    return fmt::format(
        "  Nothing that was ever acknowledged is lost: the lost nodes alone were no majority, so\n"
        "  each acknowledged write is in the log of a survivor, and node {} has the most of it.\n",
        source.id.value());
  }
  return fmt::format(
      "  Lost: every write behind entry {}. The lost nodes may have acknowledged any number of\n"
      "  them to clients, and no survivor knows how many.\n",
      last);
}

// ---- What is said of many groups ----

std::string group_text(const node::GroupRecovery& one) {
  return fmt::format("  group {}: ", one.group.value());
}

std::string lost_of_group(const std::vector<node::HostSurvivor>& hosts,
                          const node::GroupRecovery& one) {
  switch (one.fate) {
    case node::GroupFate::left_out:
      return "all of it, unless a backup has it: it was not asked for (--group)";
    case node::GroupFate::no_survivor:
      return "all of it, unless a backup has it: none of these nodes has a replica of it";
    case node::GroupFate::no_state: return "all of it, unless a backup has it: " + one.why;
    case node::GroupFate::kept_majority:
    case node::GroupFate::lost_majority: break;
  }
  const node::Survivor source = node::survivors_of(hosts, one)[one.plan.source];
  if (!one.plan.may_lose) {
    return one.fate == node::GroupFate::kept_majority
               ? "nothing: a majority of it is left"
               : "nothing that was ever acknowledged: the lost nodes were no majority of it";
  }
  std::string out = fmt::format("every write behind entry {} (term {})", source.last.index.value(),
                                source.last.term.value());
  if (one.plan.longer) {
    out += fmt::format(", also what node {} has more: it has no state",
                       hosts[one.hosts[*one.plan.longer]].id.value());
  }
  return out;
}

std::string kept_of_group(const std::vector<node::HostSurvivor>& hosts,
                          const node::GroupRecovery& one) {
  const node::Survivor source = node::survivors_of(hosts, one)[one.plan.source];
  std::string out = fmt::format("everything up to entry {} (term {}), of the log of node {}",
                                source.last.index.value(), source.last.term.value(),
                                hosts[one.source()].id.value());
  if (one.plan.committed < source.last.index) {
    out += fmt::format("; nobody knows whether {} to {} were committed",
                       one.plan.committed.value() + 1, source.last.index.value());
  }
  return out;
}

/// The addresses of members that are lost, each once.
std::string lost_hosts(const std::vector<node::HostSurvivor>& hosts,
                       const node::HostRecoveryPlan& plan) {
  std::set<std::string> addresses;
  for (const node::GroupRecovery& one : plan.groups) {
    for (const raft::Member& member : one.plan.lost) {
      const bool here = std::any_of(hosts.begin(), hosts.end(), [&](const node::HostSurvivor& h) {
        return h.uuid == member.uuid;
      });
      if (!here) addresses.insert(member.address);
    }
  }
  std::string out;
  for (const std::string& address : addresses) out += (out.empty() ? "" : ", ") + address;
  return out;
}

}  // namespace

std::string loss_text(const std::vector<node::Survivor>& survivors,
                      const node::RecoveryPlan& plan) {
  const node::Survivor& source = survivors[plan.source];
  std::string out = fmt::format("Recovery {} of cluster {}\n\nWhat may be lost:\n",
                                hex_text(plan.number), hex_text(source.cluster_id));
  out += lost_writes_text(source, plan);
  if (plan.longer) {
    const node::Survivor& longer = survivors[*plan.longer];
    out += fmt::format(
        "  Among them what node {} has up to entry {} (term {}): it has no state ({}).\n",
        longer.id.value(), longer.last.index.value(), longer.last.term.value(), longer.no_state);
  }
  out += fmt::format(
      "\nWhat is kept:\n  Everything up to entry {} (term {}), of the log of node {}.\n",
      source.last.index.value(), source.last.term.value(), source.id.value());
  if (plan.committed < source.last.index) {
    out += fmt::format(
        "  Of that, the survivors do not know whether entries {} to {} were committed. They are\n"
        "  in the recovered group: a write that was answered with UNKNOWNOUTCOME, or not at all,\n"
        "  may be executed.\n",
        plan.committed.value() + 1, source.last.index.value());
  }
  out += fmt::format(
      "\nWhat has to be true:\n"
      "  Nodes {} are lost for good.\n"
      "  They must never start again with the directories that they had: together they are able\n"
      "  to go on as the old group, beside the new one. One that reaches a node of the new group\n"
      "  is refused, and stops.\n",
      nodes_text(plan.lost));
  out += fmt::format(
      "\nThe recovered group:\n"
      "  Its log begins behind entry {}; revisions and fencing tokens rise by as\n"
      "  much, and rise on. It has a cluster id of its own, and the survivors' directories are\n"
      "  retired.\n",
      plan.base.value());
  return out;
}

std::string host_loss_text(const std::vector<node::HostSurvivor>& hosts,
                           const node::HostRecoveryPlan& plan) {
  std::string out =
      fmt::format("Recovery {} of cluster {} with {} groups\n\nWhat may be lost:\n",
                  hex_text(plan.number), hex_text(hosts.front().cluster_id), plan.groups.size());
  std::string kept;
  std::string missing;
  for (const node::GroupRecovery& one : plan.groups) {
    out += group_text(one) + lost_of_group(hosts, one) + "\n";
    if (one.goes_on()) {
      kept += group_text(one) + kept_of_group(hosts, one) + "\n";
    } else {
      missing += (missing.empty() ? "" : ", ") + std::to_string(one.group.value());
    }
  }
  out +=
      "  Of writes behind an entry the lost nodes may have acknowledged any number to clients.\n";
  out += "\nWhat is kept:\n" + kept;
  out += fmt::format(
      "\nWhat has to be true:\n"
      "  The nodes at {} are lost for good.\n"
      "  They must never start again with the directories that they had: together they are able\n"
      "  to go on as the old groups, beside the new ones. One that reaches a node of the new\n"
      "  cluster is refused, and stops.\n",
      lost_hosts(hosts, plan));
  out +=
      "\nThe recovered cluster:\n"
      "  All its groups are new, also those with a majority: hosts and their cluster id are all\n"
      "  groups' in common. Entries, revisions and fencing tokens of each rise by 2^40, and rise\n"
      "  on. The survivors' directories are retired.\n";
  if (!missing.empty()) {
    out += fmt::format("  Groups {} need a file of a backup beside those that apply writes.\n",
                       missing);
  }
  return out;
}

Error changed_since_the_plan(const std::string& dir) {
  return {ErrorCode::invalid_argument,
          fmt::format("{} has changed since the plan was made: a node has run on it. Stop all "
                      "survivors, look at each again, and make another plan",
                      dir)};
}

Error not_in_the_plan(const std::string& dir, raft::NodeId node, std::uint64_t cluster_id) {
  return {ErrorCode::invalid_argument,
          fmt::format("{} is of node {} of cluster {}, which is not in the plan: give another "
                      "directory, or make a plan with it",
                      dir, node.value(), hex_text(cluster_id))};
}

}  // namespace leasehold::cli
