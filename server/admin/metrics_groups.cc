// What the replicas of this node are and do.
#include <leasehold/server/admin/metrics.h>
#include <leasehold/server/commands/report.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <tuple>

namespace leasehold::server {
namespace {

using enum MetricType;
using Statuses = std::vector<node::NodeStatus>;
using replica::DriverCounters;

double seconds_of(lease::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::uint64_t apply_lag(const node::NodeStatus& status) {
  return status.commit > status.applied ? status.commit.value() - status.applied.value() : 0;
}

bool leads(const node::NodeStatus& status) {
  return status.role == raft::Role::leader;
}

// ---- Sums and the worst, of however many groups ----

constexpr MetricSpec kGroups{"leasehold_groups", gauge, "Groups that this node has a replica of."};
constexpr MetricSpec kLed{"leasehold_groups_led", gauge, "Groups that this node leads."};
constexpr MetricSpec kLeased{"leasehold_groups_leased", gauge,
                             "Groups of which this node holds the leader's lease."};
constexpr MetricSpec kLeaderless{"leasehold_groups_without_leader", gauge,
                                 "Groups of which this node knows no leader."};
constexpr MetricSpec kUnformed{"leasehold_groups_unformed", gauge,
                               "Groups whose first members have not all met."};
constexpr MetricSpec kFull{"leasehold_groups_disk_full", gauge,
                           "Groups that refuse commands because the disk is full."};
constexpr MetricSpec kRefused{"leasehold_groups_state_refused", gauge,
                              "Groups whose state here is damaged and not served."};
constexpr MetricSpec kWorstLag{"leasehold_apply_lag_entries_max", gauge,
                               "Committed entries that are not applied here, of the worst group."};
constexpr MetricSpec kLeastLease{"leasehold_lease_left_seconds_min", gauge,
                                 "What is left of the leader's lease, the least of the groups that "
                                 "this node leads; missing if it leads none."};

// ---- Of each group that is shown ----

constexpr MetricSpec kRole{"leasehold_raft_role", gauge,
                           "1 for the role of this node in the group, 0 for the others."};
constexpr MetricSpec kLeader{"leasehold_raft_leader", gauge,
                             "The number of the node that leads the group, as this one knows; 0: "
                             "none is known."};
constexpr MetricSpec kLease{"leasehold_lease_left_seconds", gauge,
                            "What is left of the leader's lease of this node; 0: it has none."};
constexpr MetricSpec kPromise{"leasehold_promise_left_seconds", gauge,
                              "For how long this node elects nobody but the leader that it has "
                              "promised to follow; 0: it has no promise."};
constexpr MetricSpec kMembers{"leasehold_raft_members", gauge, "Members of the group, by kind."};

struct GroupFigure {
  MetricSpec spec;
  std::uint64_t (*of)(const node::NodeStatus& status);
};
constexpr GroupFigure kGroupFigures[] = {
    {{"leasehold_raft_term", gauge, "Term of the group, as this node knows it."},
     [](const node::NodeStatus& s) { return s.term.value(); }},
    {{"leasehold_raft_commit_index", gauge, "The newest entry that is known to be committed."},
     [](const node::NodeStatus& s) { return s.commit.value(); }},
    {{"leasehold_raft_applied_index", gauge, "The newest entry that is applied here."},
     [](const node::NodeStatus& s) { return s.applied.value(); }},
    {{"leasehold_raft_last_index", gauge, "The newest entry in the log here."},
     [](const node::NodeStatus& s) { return s.last.value(); }},
    {{"leasehold_raft_durable_index", gauge, "The newest entry that is durable here."},
     [](const node::NodeStatus& s) { return s.durable.value(); }},
    {{"leasehold_raft_first_index", gauge, "The oldest entry in the log here."},
     [](const node::NodeStatus& s) { return s.first.value(); }},
    {{"leasehold_raft_log_bytes", gauge, "Payload of the entries in the log here, about."},
     [](const node::NodeStatus& s) { return s.log_bytes; }},
    {{"leasehold_raft_apply_lag_entries", gauge, "Committed entries that are not applied here."},
     [](const node::NodeStatus& s) { return apply_lag(s); }},
    {{"leasehold_calls_waiting", gauge, "Calls of this node's clients that wait for the group."},
     [](const node::NodeStatus& s) { return std::uint64_t{s.calls_waiting}; }},
    {{"leasehold_proposals_held", gauge,
      "Commands that wait until a leader is known, or for the next try."},
     [](const node::NodeStatus& s) { return std::uint64_t{s.proposals_held}; }},
    {{"leasehold_proposals_queued", gauge,
      "Commands that wait for the next append of this leader."},
     [](const node::NodeStatus& s) { return std::uint64_t{s.proposals_queued}; }},
    {{"leasehold_proposals_uncommitted", gauge, "Entries of this leader that are not committed."},
     [](const node::NodeStatus& s) { return std::uint64_t{s.proposals_uncommitted}; }},
    {{"leasehold_store_durable_index", gauge, "The newest entry that the store has made durable."},
     [](const node::NodeStatus& s) { return s.machine_durable.value(); }},
};

struct StoreFigure {
  MetricSpec spec;
  std::uint64_t (*of)(const ServedGroup& group);
};
constexpr StoreFigure kStoreFigures[] = {
    {{"leasehold_keys", gauge, "Keys in the store."},
     [](const ServedGroup& g) { return g.store.size(); }},
    {{"leasehold_revision", gauge, "Revision of the store: it rises with each change of a key."},
     [](const ServedGroup& g) { return g.store.revision(); }},
    {{"leasehold_watch_history_bytes", gauge, "Memory of the changes kept for watchers."},
     [](const ServedGroup& g) { return std::uint64_t{g.store.events().figures().bytes}; }},
    {{"leasehold_watch_history_events", gauge, "Changes kept for watchers."},
     [](const ServedGroup& g) { return std::uint64_t{g.store.events().figures().events}; }},
    {{"leasehold_client_leases", gauge,
      "Leases of clients and of keys with a time to live, as this node has seen them."},
     [](const ServedGroup& g) {
       return g.lease_keeper == nullptr ? std::uint64_t{0} : std::uint64_t{g.lease_keeper->size()};
     }},
    {{"leasehold_sessions", gauge,
      "Open sessions of clients, as the leader counts them every few seconds; 0 elsewhere."},
     [](const ServedGroup& g) { return g.sessions ? g.sessions() : std::uint64_t{0}; }},
    {{"leasehold_backup_running", gauge, "Whether a backup is being written."},
     [](const ServedGroup& g) {
       return std::uint64_t{g.backups.progress && g.backups.progress().has_value()};
     }},
};

// ---- Sums of counters ----

struct DriverCount {
  MetricSpec spec;
  std::uint64_t DriverCounters::*member;
};
constexpr DriverCount kDriverCounts[] = {
    {{"leasehold_proposals_total", counter, "Commands of this node's own callers."},
     &DriverCounters::proposals},
    {{"leasehold_proposals_forwarded_total", counter, "Of these, those sent to the leader."},
     &DriverCounters::proposals_forwarded},
    {{"leasehold_proposals_resent_total", counter,
      "Sent to the same leader again: no answer came."},
     &DriverCounters::proposals_resent},
    {{"leasehold_forwards_received_total", counter, "Commands that followers sent to this node."},
     &DriverCounters::forwards_received},
    {{"leasehold_forwards_refused_total", counter,
      "Of these, refused: this node did not lead, had it already, or was overloaded."},
     &DriverCounters::forwards_refused},
    {{"leasehold_appends_sent_total", counter, "Messages with entries that were sent to peers."},
     &DriverCounters::appends_sent},
    {{"leasehold_heartbeats_sent_total", counter, "Messages without entries."},
     &DriverCounters::heartbeats_sent},
    {{"leasehold_log_batches_total", counter, "Batches that were given to the log."},
     &DriverCounters::batches_persisted},
    {{"leasehold_elections_won_total", counter, "Elections that this node has won."},
     &DriverCounters::elections_won},
    {{"leasehold_log_cuts_total", counter, "How often the front of a log was cut off."},
     &DriverCounters::log_cuts},
    {{"leasehold_snapshots_taken_total", counter, "Snapshots made here for peers."},
     &DriverCounters::snapshots_taken},
    {{"leasehold_snapshots_sent_total", counter, "Snapshots sent whole, to one peer each."},
     &DriverCounters::snapshots_sent},
    {{"leasehold_snapshots_installed_total", counter, "Snapshots of a leader installed here."},
     &DriverCounters::snapshots_installed},
    {{"leasehold_snapshot_sent_bytes_total", counter, "Bytes of snapshots sent to peers."},
     &DriverCounters::chunk_bytes_sent},
    {{"leasehold_snapshot_copied_bytes_total", counter,
      "Bytes of arriving snapshots that were here already and have not been sent."},
     &DriverCounters::snapshot_bytes_copied},
};
constexpr MetricSpec kNodeReads{
    "leasehold_node_reads_total", counter,
    "Reads that the node's own thread answered, by what justified them; "
    "those on the threads of clients are leasehold_reads_answered_total."};
constexpr std::tuple<const char*, std::uint64_t DriverCounters::*> kReadBases[] = {
    {"lease", &DriverCounters::reads_lease},   {"quorum", &DriverCounters::reads_quorum},
    {"leader", &DriverCounters::reads_leader}, {"log", &DriverCounters::reads_log},
    {"stale", &DriverCounters::reads_stale},   {"refused", &DriverCounters::reads_refused},
};

/// Of the process: each group says the same.
struct ProcessCount {
  MetricSpec spec;
  std::uint64_t node::NodeStatus::*member;
};
constexpr ProcessCount kProcessCounts[] = {
    {{"leasehold_log_syncs_total", counter, "Successful syncs of the log."},
     &node::NodeStatus::syncs},
    {{"leasehold_peer_frames_rejected_total", counter,
      "Frames and connections that were refused at the peer port."},
     &node::NodeStatus::frames_rejected},
    {{"leasehold_deputy_restarts_total", counter, "How often the deputy was started again."},
     &node::NodeStatus::deputy_restarts},
    {{"leasehold_end_notices_believed_total", counter, "Notices of ends of processes, believed."},
     &node::NodeStatus::notices_believed},
    {{"leasehold_end_notices_late_total", counter,
      "Notices of ends of processes whose next ones were known already."},
     &node::NodeStatus::notices_late},
    {{"leasehold_end_notices_refused_total", counter, "Notices of ends of processes, refused."},
     &node::NodeStatus::notices_refused},
};

// ---- Peers ----

constexpr MetricSpec kConnected{"leasehold_peer_connected", gauge,
                                "Whether this node holds a connection to the peer."};
constexpr MetricSpec kPeerLag{"leasehold_peer_lag_entries", gauge,
                              "Entries of this leader's log that are not durable at the peer, of "
                              "the worst group; missing where this node leads none, or has not "
                              "heard from the peer since it leads."};
constexpr MetricSpec kHeard{"leasehold_peer_acknowledged_age_seconds", gauge,
                            "Age of the newest heartbeat of this leader that the peer has "
                            "acknowledged, of the worst group: a heartbeat's interval and a round "
                            "trip while all is well; missing where this node leads none."};
constexpr MetricSpec kSending{"leasehold_snapshots_sending", gauge,
                              "Snapshots on their way from this node."};
constexpr MetricSpec kReceiving{"leasehold_snapshots_receiving", gauge,
                                "Snapshots on their way to this node."};
constexpr MetricSpec kStateCompares{"leasehold_state_compares_total", counter,
                                    "Comparisons of the replicas' states that were judged."};
constexpr MetricSpec kScrubs{"leasehold_state_scrubs_total", counter,
                             "How often everything stored was read back."};
constexpr MetricSpec kScrubErrors{"leasehold_state_scrub_errors_total", counter,
                                  "Damages that were found by that."};

void sums(const MetricsSource& source, MetricsText& page) {
  const Statuses& statuses = source.look.statuses;
  const auto here = [&](std::size_t i) { return source.groups.all()[i].here(); };
  std::uint64_t groups = 0;
  for (std::size_t i = 0; i < source.groups.all().size(); ++i) groups += here(i) ? 1 : 0;
  page.one(kGroups, groups);
  const auto count = [&](const MetricSpec& spec, bool (*wanted)(const node::NodeStatus&)) {
    page.family(spec);
    if (!source.look.answered) return;
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < statuses.size(); ++i)
      found += here(i) && wanted(statuses[i]) ? 1 : 0;
    page.add(found);
  };
  count(kLed, leads);
  count(kLeased, [](const node::NodeStatus& s) { return s.lease_left > lease::Duration(0); });
  count(kLeaderless, [](const node::NodeStatus& s) { return s.leader == raft::kNobody; });
  count(kUnformed, [](const node::NodeStatus& s) { return !s.formed; });
  count(kFull, [](const node::NodeStatus& s) { return s.disk_full; });
  std::uint64_t refused = 0;
  for (const ServedGroup& group : source.groups.all()) refused += group.health.refuses ? 1 : 0;
  page.one(kRefused, refused);
  std::uint64_t lag = 0;
  std::optional<lease::Duration> least;
  for (const node::NodeStatus& status : statuses) {
    lag = std::max(lag, apply_lag(status));
    if (leads(status)) least = std::min(least.value_or(status.lease_left), status.lease_left);
  }
  page.family(kWorstLag);
  if (source.look.answered) page.add(lag);
  page.family(kLeastLease);
  if (least) page.add(seconds_of(*least));
}

void roles(const MetricsSource& source, MetricsText& page) {
  page.family(kRole);
  for (const std::size_t i : source.shown) {
    for (const raft::Role role : {raft::Role::follower, raft::Role::pre_candidate,
                                  raft::Role::candidate, raft::Role::leader}) {
      page.add(std::uint64_t{source.look.statuses[i].role == role},
               {{"group", std::to_string(i + 1)}, {"role", role_name(role)}});
    }
  }
}

void members(const MetricsSource& source, MetricsText& page) {
  page.family(kMembers);
  for (const std::size_t i : source.shown) {
    std::uint64_t voters = 0;
    std::uint64_t learners = 0;
    std::uint64_t witnesses = 0;
    for (const node::MemberStatus& member : source.look.statuses[i].members) {
      ++(member.witness ? witnesses : member.voter ? voters : learners);
    }
    const std::string group = std::to_string(i + 1);
    page.add(voters, {{"group", group}, {"kind", "voter"}});
    page.add(learners, {{"group", group}, {"kind", "learner"}});
    page.add(witnesses, {{"group", group}, {"kind", "witness"}});
  }
}

/// Of all groups: a peer may be a member of some.
struct PeerFigures {
  bool connected = false;
  std::optional<std::uint64_t> lag;
  std::optional<lease::Duration> heard_ago;
};

void peers(const MetricsSource& source, MetricsText& page) {
  std::map<raft::NodeId, PeerFigures> known;
  for (const node::NodeStatus& status : source.look.statuses) {
    for (const node::MemberStatus& member : status.members) {
      if (member.id == status.id) continue;
      PeerFigures& peer = known[source.state.options.node_of(member.id)];
      peer.connected = peer.connected || member.connected;
      // What a peer has is not known before this leader has heard from it.
      if (!leads(status) || !member.heard_ago) continue;
      const std::uint64_t lag =
          status.last > member.match ? status.last.value() - member.match.value() : 0;
      peer.lag = std::max(peer.lag.value_or(0), lag);
      peer.heard_ago = std::max(peer.heard_ago.value_or(*member.heard_ago), *member.heard_ago);
    }
  }
  page.family(kConnected);
  for (const auto& [id, peer] : known) {
    page.add(std::uint64_t{peer.connected}, {{"peer", std::to_string(id.value())}});
  }
  page.family(kPeerLag);
  for (const auto& [id, peer] : known) {
    if (peer.lag) page.add(*peer.lag, {{"peer", std::to_string(id.value())}});
  }
  page.family(kHeard);
  for (const auto& [id, peer] : known) {
    if (!peer.heard_ago) continue;
    page.add(seconds_of(*peer.heard_ago), {{"peer", std::to_string(id.value())}});
  }
}

}  // namespace

void group_metrics(const MetricsSource& source, MetricsText& page) {
  sums(source, page);
  roles(source, page);
  page.family(kLeader);
  for (const std::size_t i : source.shown) {
    page.add(source.state.options.node_of(source.look.statuses[i].leader).value(),
             {{"group", std::to_string(i + 1)}});
  }
  page.family(kLease);
  for (const std::size_t i : source.shown) {
    page.add(seconds_of(source.look.statuses[i].lease_left), {{"group", std::to_string(i + 1)}});
  }
  page.family(kPromise);
  for (const std::size_t i : source.shown) {
    page.add(seconds_of(source.look.statuses[i].promise_left), {{"group", std::to_string(i + 1)}});
  }
  members(source, page);
  for (const GroupFigure& figure : kGroupFigures) {
    page.family(figure.spec);
    for (const std::size_t i : source.shown) {
      page.add(figure.of(source.look.statuses[i]), {{"group", std::to_string(i + 1)}});
    }
  }
  for (const StoreFigure& figure : kStoreFigures) {
    page.family(figure.spec);
    for (const std::size_t i : source.shown) {
      page.add(figure.of(source.groups.all()[i]), {{"group", std::to_string(i + 1)}});
    }
  }
}

void replication_metrics(const MetricsSource& source, MetricsText& page) {
  const Statuses& statuses = source.look.statuses;
  const auto sum = [&](std::uint64_t DriverCounters::*member) {
    std::uint64_t total = 0;
    for (const node::NodeStatus& status : statuses) total += status.counters.*member;
    return total;
  };
  for (const DriverCount& count : kDriverCounts) {
    page.family(count.spec);
    if (source.look.answered) page.add(sum(count.member));
  }
  page.family(kNodeReads);
  for (const auto& [basis, member] : kReadBases) {
    if (source.look.answered) page.add(sum(member), {{"basis", basis}});
  }
  for (const ProcessCount& count : kProcessCounts) {
    page.family(count.spec);
    std::uint64_t most = 0;
    for (const node::NodeStatus& status : statuses) most = std::max(most, status.*count.member);
    if (source.look.answered) page.add(most);
  }
  peers(source, page);
  std::uint64_t sending = 0;
  std::uint64_t receiving = 0;
  for (const node::NodeStatus& status : statuses) {
    for (const replica::SnapshotTransfer& transfer : status.transfers) {
      ++(transfer.sending ? sending : receiving);
    }
  }
  page.one(kSending, sending);
  page.one(kReceiving, receiving);
  std::uint64_t compares = 0;
  std::uint64_t scrubs = 0;
  std::uint64_t errors = 0;
  for (const ServedGroup& group : source.groups.all()) {
    compares += group.health.compares;
    scrubs += group.health.scrubs;
    errors += group.health.scrub_errors;
  }
  page.one(kStateCompares, compares);
  page.one(kScrubs, scrubs);
  page.one(kScrubErrors, errors);
}

}  // namespace leasehold::server
