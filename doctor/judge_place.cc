// Where this node lives: its directory and its addresses.
#include <leasehold/doctor/judge.h>
#include <leasehold/doctor/make_finding.h>
#include <leasehold/net/handshake.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace leasehold::doctor {
namespace {

/// The node that these settings are of runs: it has its port, and the directory. Its lock is not
/// seen from another container; then it may tell its directory itself.
bool runs(const Facts& facts) {
  const std::string own = facts.folder.uuid ? net::uuid_text(*facts.folder.uuid) : "";
  const bool answers =
      std::any_of(facts.servers.begin(), facts.servers.end(),
                  [&own](const ServerFacts& one) { return !own.empty() && one.uuid == own; });
  const bool taken =
      std::any_of(facts.addresses.begin(), facts.addresses.end(),
                  [](const AddressFacts& one) { return one.own && one.reach == Reach::taken; });
  return taken && (answers || facts.folder.locked_by != 0);
}

Finding judge_mark_error(const Error& error) {
  const char* const kName = "data-dir";
  if (error.code == ErrorCode::unsupported_format) {
    return fault(kName, error.message, "start the build that wrote it, or a newer one");
  }
  return fault(kName, error.message,
               "leasehold member remove this node, wipe its directory, and add it again");
}

Finding judge_content(const server::ServeSettings& settings, const FolderFacts& facts) {
  const char* const kName = "data-dir";
  const std::string& dir = settings.data_dir;
  if (facts.node && *facts.node != settings.node.id) {
    return fault(kName,
                 fmt::format("{} holds the log of node {}, and --id is {}", dir,
                             facts.node->value(), settings.node.id.value()),
                 fmt::format("--id {}, or the --data-dir of node {}", facts.node->value(),
                             settings.node.id.value()));
  }
  if (facts.cluster_id && facts.cluster_expected && *facts.cluster_id != *facts.cluster_expected) {
    return fault(kName,
                 fmt::format("{} belongs to another cluster than --cluster and --peers name", dir),
                 "give --cluster and --peers as they were when the group formed, or another "
                 "--data-dir");
  }
  return fine(kName, facts.node ? fmt::format("{} holds the log of this node", dir)
                                : fmt::format("{} holds no log yet", dir));
}

Finding judge_lock(const server::ServeSettings& settings, const Facts& facts) {
  const char* const kName = "data-dir";
  const std::uint64_t process = facts.folder.locked_by;
  if (runs(facts)) return fine(kName, fmt::format("process {} serves from it", process));
  return fault(kName,
               fmt::format("process {} has locked {}, and does not serve at --listen {}", process,
                           settings.data_dir, settings.listen),
               fmt::format("ps -p {} shows it: end it, or choose another --data-dir", process));
}

std::string port_of(const std::string& address) {
  return address.substr(address.rfind(':') + 1);
}

Finding judge_own(const AddressFacts& facts, bool running) {
  const char* const kName = "ports";
  const std::string named = fmt::format("{} {}", facts.name, facts.address);
  switch (facts.reach) {
    case Reach::fine: return fine(kName, named + " is free");
    case Reach::taken:
      if (running) return fine(kName, named + " is the running node's");
      return fault(
          kName, named + " is taken",
          fmt::format("ss -ltnp 'sport = :{}' shows by whom: end it, or choose another port",
                      port_of(facts.address)));
    case Reach::not_here:
      return fault(kName, named + " is no address of this machine",
                   "ip addr shows those that are; 0.0.0.0 means all");
    case Reach::no_such_name:
      return fault(kName, fmt::format("{} does not resolve: {}", named, facts.problem),
                   "put the name into DNS or /etc/hosts, or write the address itself");
    default:
      return fault(kName, fmt::format("{} cannot be bound: {}", named, facts.problem),
                   "choose a port from 1024 on, or give the right to bind this one "
                   "(AmbientCapabilities=CAP_NET_BIND_SERVICE)");
  }
}

Finding judge_peer(const AddressFacts& facts) {
  const char* const kName = "peers";
  const std::string who = facts.node == raft::kNobody
                              ? fmt::format("the member at {}", facts.address)
                              : fmt::format("node {} at {}", facts.node.value(), facts.address);
  switch (facts.reach) {
    case Reach::fine: return fine(kName, who + " answers");
    case Reach::no_such_name:
      return fault(kName, fmt::format("{}: the name does not resolve: {}", who, facts.problem),
                   "put the name into DNS or /etc/hosts, or write the address itself");
    case Reach::refused:
      return warning(kName, who + ": its machine answers, and nobody listens there",
                     fmt::format("start that node, or correct {}", facts.name));
    default:
      return warning(
          kName, fmt::format("{} does not answer: {}", who, facts.problem),
          fmt::format("start that machine, let port {} through the firewalls between, or "
                      "correct {}",
                      port_of(facts.address), facts.name));
  }
}

}  // namespace

Findings judge_folder(const server::ServeSettings& settings, const Facts& facts) {
  const char* const kName = "data-dir";
  const FolderFacts& folder = facts.folder;
  Findings all;
  if (!folder.problem.empty()) {
    all.push_back(fault(kName, folder.problem,
                        fmt::format("give this user the right to use {}, or choose another "
                                    "--data-dir",
                                    settings.data_dir)));
    return all;
  }
  if (!folder.exists) {
    all.push_back(
        fine(kName, fmt::format("{} does not exist yet: serve makes it", settings.data_dir)));
    return all;
  }
  if (folder.of_another_user) {
    all.push_back(fault(kName, settings.data_dir + " belongs to another user",
                        "run serve as that user, or chown -R it to this one"));
  } else if (folder.open_to_others) {
    all.push_back(warning(kName, settings.data_dir + " is open to other users",
                          fmt::format("chmod 700 {} (serve does it, too)", settings.data_dir)));
  }
  all.push_back(folder.mark_error ? judge_mark_error(*folder.mark_error)
                                  : judge_content(settings, folder));
  if (folder.locked_by != 0) all.push_back(judge_lock(settings, facts));
  return all;
}

Findings judge_addresses(const Facts& facts) {
  const bool running = runs(facts);
  Findings all;
  for (const AddressFacts& one : facts.addresses) {
    all.push_back(one.own ? judge_own(one, running) : judge_peer(one));
  }
  return all;
}

}  // namespace leasehold::doctor
