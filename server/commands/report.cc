#include <leasehold/server/commands/info_lines.h>
#include <leasehold/server/commands/report.h>
#include <leasehold/server/front/duration.h>
#include <leasehold/server/front/settings_words.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace leasehold::server {

const char* const kVersion = LEASEHOLD_VERSION;

namespace {

using Clock = std::chrono::steady_clock;

/// The version of Redis whose protocol this is: some clients look for it.
constexpr const char* kRedisVersion = "7.0.0";

double milliseconds(lease::Duration duration) {
  return static_cast<double>(
             std::chrono::duration_cast<std::chrono::microseconds>(duration).count()) /
         1000.0;
}

/// Resident memory of this process; 0 if the system does not report it.
std::uint64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  unsigned long total = 0, resident = 0;
  const int fields = std::fscanf(file, "%lu %lu", &total, &resident);
  std::fclose(file);
  if (fields != 2) return 0;
  return std::uint64_t{resident} * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string hex(const raft::Uuid& uuid) {
  return fmt::format("{:016x}{:016x}", uuid.high, uuid.low);
}

struct NamedCount {
  const char* name;
  Count Counters::*count;
};

constexpr NamedCount kReadCounts[] = {
    {"lease_hits", &Counters::lease_hits},
    {"lease_waits", &Counters::lease_waits},
    {"lease_fallbacks", &Counters::lease_fallbacks},
    {"quorum_asked", &Counters::quorum_asked},
    {"log_asked", &Counters::log_asked},
    {"stale_hits", &Counters::stale_hits},
    {"stale_fallbacks", &Counters::stale_fallbacks},
    {"answered_lease", &Counters::answered_lease},
    {"answered_quorum", &Counters::answered_quorum},
    {"answered_leader", &Counters::answered_leader},
    {"answered_log", &Counters::answered_log},
    {"refused", &Counters::reads_refused},
};
constexpr NamedCount kWriteCounts[] = {
    {"proposed", &Counters::writes},
    {"committed", &Counters::writes_committed},
    {"dropped", &Counters::writes_dropped},
    {"unknown", &Counters::writes_unknown},
};
constexpr NamedCount kClientCounts[] = {
    {"connections", &Counters::connections},
    {"connections_refused", &Counters::connections_refused},
    {"connections_idle", &Counters::connections_idle},
    {"connections_denied", &Counters::connections_denied},
    {"connections_delayed", &Counters::connections_delayed},
    {"connections_large", &Counters::connections_large},
    {"connections_slow", &Counters::connections_slow},
    {"connections_displaced", &Counters::connections_displaced},
    {"http_requests", &Counters::http_requests},
    {"commands", &Counters::commands},
    {"commands_refused", &Counters::commands_refused},
    {"protocol_errors", &Counters::protocol_errors},
    {"output_stalls", &Counters::output_stalls},
};

constexpr NamedCount kWatchCounts[] = {
    {"watches_begun", &Counters::watches},
    {"watch_messages", &Counters::watch_messages},
    {"watch_events", &Counters::watch_events},
    {"watch_resyncs", &Counters::watch_resyncs},
};

void server_section(InfoLines& lines, const node::NodeStatus& status, const ServerState& state) {
  lines.section("Server");
  lines.add("leasehold_version", kVersion);
  lines.add("redis_version", kRedisVersion);
  lines.add("redis_mode", "standalone");
  lines.add("process_id", static_cast<std::uint64_t>(getpid()));
  lines.add("tcp_port", state.port);
  lines.add("node_id", state.options.node_of(status.id).value());
  lines.add("uptime_in_seconds", static_cast<std::uint64_t>(uptime_seconds(state)));
  lines.add("io_threads", state.options.io_threads);
}

void clients_section(InfoLines& lines, const ServerState& state) {
  lines.section("Clients");
  lines.add("connected_clients", state.clients.load(std::memory_order_relaxed));
  lines.add("maxclients", state.live.clients_max());
  lines.add("tls_clients", state.tls_clients.load(std::memory_order_relaxed));
}

void memory_section(InfoLines& lines, const ServerState& state) {
  lines.section("Memory");
  lines.add("used_memory_rss", resident_bytes());
  lines.add("client_memory", state.client_memory.used());
  lines.add("client_memory_max", state.options.client_memory_max);
  lines.add("read_cache", state.options.read_cache().bytes);
  lines.add("read_cache_evicted", state.options.read_cache().evicted);
  lines.add("client_input_buffers", state.input_bytes.load(std::memory_order_relaxed));
}

void persistence_section(InfoLines& lines) {
  lines.section("Persistence");
  lines.add("loading", 0);  // clients of Redis wait for it
}

void stats_section(InfoLines& lines, const ServerState& state) {
  lines.section("Stats");
  lines.add("total_connections_received", state.sum(&Counters::connections));
  lines.add("rejected_connections", state.sum(&Counters::connections_refused));
  lines.add("idle_connections_closed", state.sum(&Counters::connections_idle));
  lines.add("total_commands_processed", state.sum(&Counters::commands));
  lines.add("total_error_commands", state.sum(&Counters::commands_refused));
  const AclLog& refused = state.accounts.log;
  lines.add("acl_access_denied_auth", refused.refused(AclReason::auth));
  lines.add("acl_access_denied_cmd", refused.refused(AclReason::command));
  lines.add("acl_access_denied_key", refused.refused(AclReason::key));
  lines.add("acl_access_denied_channel", refused.refused(AclReason::channel));
  lines.add("protocol_errors", state.sum(&Counters::protocol_errors));
  lines.add("output_stalls", state.sum(&Counters::output_stalls));
  lines.add("slow_commands_kept", state.slow_log.size());
  lines.add("tls_handshakes", state.sum(&Counters::tls_handshakes));
  lines.add("tls_handshakes_resumed", state.sum(&Counters::tls_resumed));
  lines.add("tls_handshakes_failed_plain", state.sum(&Counters::tls_failed_plain));
  lines.add("tls_handshakes_failed_protocol", state.sum(&Counters::tls_failed_protocol));
  lines.add("tls_handshakes_failed_certificate", state.sum(&Counters::tls_failed_certificate));
  lines.add("tls_handshakes_failed_refused", state.sum(&Counters::tls_failed_refused));
  lines.add("tls_handshakes_failed_late", state.sum(&Counters::tls_failed_late));
  lines.add("tls_handshakes_failed_crowded", state.sum(&Counters::tls_failed_crowded));
  lines.add("tls_clients_distrusted", state.sum(&Counters::tls_distrusted));
}

/// Connections with other members, to and from them, that are protected by `what`.
std::uint64_t peer_connections(const node::NodeStatus& status, std::string_view what) {
  std::uint64_t count = 0;
  for (const node::MemberStatus& member : status.members) {
    count += member.proofs.to.starts_with(what) ? 1 : 0;
    count += member.proofs.from.starts_with(what) ? 1 : 0;
  }
  return count;
}

void replication_section(InfoLines& lines, const node::NodeStatus& status,
                         const ServerState& state) {
  lines.section("Replication");
  lines.add("role", role_name(status.role));
  lines.add("term", status.term.value());
  lines.add("leader", state.options.node_of(status.leader).value());
  lines.add("commit_index", status.commit.value());
  lines.add("applied_index", status.applied.value());
  lines.add("last_index", status.last.value());
  lines.add("durable_index", status.durable.value());
  lines.add("log_first_index", status.first.value());
  lines.add("log_bytes", status.log_bytes);
  lines.add("log_cuts", status.counters.log_cuts);
  lines.add("store_durable_index", status.machine_durable.value());
  lines.add("disk_full", status.disk_full ? "yes" : "no");
  lines.add("members", status.members.size());
  lines.add("feature_level", std::uint64_t{status.level});
  lines.add("log_syncs", status.syncs);
  for (const std::string kind : {"plain", "key", "tls"})
    lines.add("peer_connections_" + kind, peer_connections(status, kind));
  lines.add("peer_frames_rejected", status.frames_rejected);
  for (const auto& [name, value] : state.options.recovery) lines.add(name, value);
  lines.add("deputy", status.deputy ? "running" : "none");
  lines.add("deputy_restarts", status.deputy_restarts);
  lines.add("end_notices", status.notices_heard ? "heard" : "not heard");
  lines.add("end_notices_believed", status.notices_believed);
  lines.add("end_notices_late", status.notices_late);
  lines.add("end_notices_refused", status.notices_refused);
}

void leasehold_section(InfoLines& lines, const node::NodeStatus& status, const ServerState& state) {
  lines.section("Leasehold");
  lines.add("lease_left_us", static_cast<std::uint64_t>(status.lease_left.count() / 1000));
  lines.add("lease_reads", state.options.lease_reads ? "on" : "off");
  for (const NamedCount& named : kReadCounts) {
    lines.add(std::string("reads_") + named.name, state.sum(named.count));
  }
  for (const NamedCount& named : kWriteCounts) {
    lines.add(std::string("writes_") + named.name, state.sum(named.count));
  }
}

void state_section(InfoLines& lines, const StateHealth& health) {
  lines.section("State");
  lines.add("state_served", health.refuses.load() ? "no" : "yes");
  lines.add("state_compares", health.compares.load());
  lines.add("state_compared_index", health.compared_index.load());
  lines.add("state_scrubs", health.scrubs.load());
  lines.add("state_scrub_errors", health.scrub_errors.load());
  lines.add("state_scrubbed_bytes", health.scrubbed_bytes.load());
  lines.add("state_last_scrub", static_cast<std::uint64_t>(health.last_scrub.load()));
}

void watches_section(InfoLines& lines, const ServerState& state,
                     const kv::EventHistory::Figures& history) {
  lines.section("Watches");
  lines.add("watchers", state.watchers.load(std::memory_order_relaxed));
  lines.add("subscribers", state.subscribers.load(std::memory_order_relaxed));
  for (const NamedCount& named : kWatchCounts) lines.add(named.name, state.sum(named.count));
  lines.add("history_first_revision", history.first);
  lines.add("history_newest_revision", history.head);
  lines.add("history_events", history.events);
  lines.add("history_bytes", history.bytes);
  lines.add("history_events_forgotten", history.forgotten);
}

nlohmann::ordered_json counts_json(const NamedCount* first, std::size_t count,
                                   const ServerState& state) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < count; ++i) out[first[i].name] = state.sum(first[i].count);
  return out;
}

nlohmann::ordered_json watches_json(const ServerState& state,
                                    const kv::EventHistory::Figures& history) {
  auto out = counts_json(std::begin(kWatchCounts), std::size(kWatchCounts), state);
  out["watchers"] = state.watchers.load(std::memory_order_relaxed);
  out["subscribers"] = state.subscribers.load(std::memory_order_relaxed);
  out["history_first"] = history.first;
  out["history_newest"] = history.head;
  out["history_bytes"] = history.bytes;
  return out;
}

nlohmann::ordered_json snapshots_json(const node::NodeStatus& status) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const replica::SnapshotTransfer& transfer : status.transfers) {
    out.push_back({{"peer", transfer.peer.value()},
                   {"sending", transfer.sending},
                   {"last", transfer.last.value()},
                   {"percent", 100 * transfer.bytes / transfer.size}});
  }
  return out;
}

/// The backup that is being written; null: none.
nlohmann::ordered_json backup_json(const BackupCalls& backups) {
  if (!backups.progress) return nullptr;
  const auto progress = backups.progress();
  if (!progress) return nullptr;
  return {{"name", progress->name}, {"bytes", progress->bytes}, {"size", progress->size}};
}

nlohmann::ordered_json state_json(const StateHealth& health) {
  return {{"served", !health.refuses.load()},
          {"refused", health.refused()},
          {"warning", health.warning()},
          {"compares", health.compares.load()},
          {"compared_index", health.compared_index.load()},
          {"scrubs", health.scrubs.load()},
          {"scrub_errors", health.scrub_errors.load()},
          {"last_scrub", health.last_scrub.load()}};
}

nlohmann::ordered_json groups_json(const std::vector<node::NodeStatus>& statuses,
                                   std::size_t selected, raft::NodeId node) {
  std::size_t led = 0;
  std::size_t leased = 0;
  std::size_t without_leader = 0;
  for (const node::NodeStatus& status : statuses) {
    led += status.role == raft::Role::leader ? 1 : 0;
    leased += status.lease_left > lease::Duration(0) ? 1 : 0;
    without_leader += status.leader == raft::kNobody ? 1 : 0;
  }
  return {{"number", selected + 1}, {"count", statuses.size()},
          {"node", node.value()},   {"led", led},
          {"leased", leased},       {"without_leader", without_leader}};
}

nlohmann::ordered_json driver_json(const node::NodeStatus& status) {
  const replica::DriverCounters& counters = status.counters;
  return {
      {"proposals", counters.proposals},
      {"proposals_forwarded", counters.proposals_forwarded},
      {"proposals_resent", counters.proposals_resent},
      {"forwards_received", counters.forwards_received},
      {"forwards_refused", counters.forwards_refused},
      {"reads_lease", counters.reads_lease},
      {"reads_quorum", counters.reads_quorum},
      {"reads_leader", counters.reads_leader},
      {"reads_stale", counters.reads_stale},
      {"reads_log", counters.reads_log},
      {"reads_refused", counters.reads_refused},
      {"appends_sent", counters.appends_sent},
      {"heartbeats_sent", counters.heartbeats_sent},
      {"batches_persisted", counters.batches_persisted},
      {"elections_won", counters.elections_won},
      {"log_cuts", counters.log_cuts},
      {"snapshots_taken", counters.snapshots_taken},
      {"snapshots_sent", counters.snapshots_sent},
      {"snapshots_installed", counters.snapshots_installed},
      {"chunks_sent", counters.chunks_sent},
      {"chunk_bytes_sent", counters.chunk_bytes_sent},
      {"chunks_received", counters.chunks_received},
      {"log_syncs", status.syncs},
      {"frames_rejected", status.frames_rejected},
      {"deputy_restarts", status.deputy_restarts},
      {"end_notices_believed", status.notices_believed},
      {"end_notices_late", status.notices_late},
      {"end_notices_refused", status.notices_refused},
  };
}

}  // namespace

std::int64_t uptime_seconds(const ServerState& state) {
  return std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - state.started).count();
}

const char* role_name(raft::Role role) {
  switch (role) {
    case raft::Role::follower: return "follower";
    case raft::Role::pre_candidate: return "pre_candidate";
    case raft::Role::candidate: return "candidate";
    case raft::Role::leader: return "leader";
  }
  LEASEHOLD_UNREACHABLE();
}

std::string info_text(const std::vector<std::string>& names, const node::NodeStatus& status,
                      const ServerState& state, const ServedGroup& group) {
  const kv::Store& store = group.store;
  const bool all =
      names.empty() || std::any_of(names.begin(), names.end(), [](const std::string& name) {
        return name == "all" || name == "default" || name == "everything";
      });
  const auto wanted = [&](std::string_view name) {
    return all || std::find(names.begin(), names.end(), name) != names.end();
  };
  InfoLines lines;
  if (wanted("server")) server_section(lines, status, state);
  if (wanted("clients")) clients_section(lines, state);
  if (wanted("memory")) memory_section(lines, state);
  if (wanted("persistence")) persistence_section(lines);
  if (wanted("stats")) stats_section(lines, state);
  if (wanted("replication")) replication_section(lines, status, state);
  if (wanted("leasehold")) leasehold_section(lines, status, state);
  if (wanted("state")) state_section(lines, group.health);
  if (wanted("watches")) watches_section(lines, state, store.events().figures());
  if (wanted("cluster")) {
    lines.section("Cluster");
    lines.add("cluster_enabled", 1);
  }
  if (wanted("keyspace")) {
    const std::uint64_t keys = store.size();
    lines.section("Keyspace");
    if (keys > 0) lines.add("db0", fmt::format("keys={},expires=0,avg_ttl=0", keys));
  }
  return lines.take();
}

namespace {

nlohmann::ordered_json member_list(const node::NodeStatus& status) {
  nlohmann::ordered_json members = nlohmann::ordered_json::array();
  for (const node::MemberStatus& member : status.members) {
    members.push_back({{"id", member.id.value()},
                       {"address", member.address},
                       {"voter", member.voter},
                       {"connected", member.connected},
                       {"proof_to", member.proofs.to},
                       {"proof_from", member.proofs.from},
                       {"match", member.match.value()},
                       {"leaving", member.leaving},
                       {"witness", member.witness},
                       {"uuid", hex(member.uuid)}});
  }
  return members;
}

nlohmann::ordered_json membership_place(const node::NodeStatus& status) {
  return {{"term", status.membership.term.value()},
          {"index", status.membership.index.value()},
          {"id", raft::text_of(status.membership_id)},
          {"joint", status.membership_joint},
          {"committed", status.membership_committed}};
}

/// Addresses are text of the operator: bytes that are not UTF-8 are replaced, and throw nothing.
std::string text_of(const nlohmann::ordered_json& object) {
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

std::string members_json(const node::NodeStatus& status) {
  return text_of({{"node", status.id.value()},
                  {"leader", status.leader.value()},
                  {"term", status.term.value()},
                  {"last", status.last.value()},
                  {"membership", membership_place(status)},
                  {"members", member_list(status)}});
}

std::string settings_json(const node::NodeStatus& status) {
  raft::GroupSettings settings;
  settings.timing = status.timing;
  if (status.settings) settings = *status.settings;
  nlohmann::ordered_json out = {{"node", status.id.value()},
                                {"leader", status.leader.value()},
                                {"agreed", status.settings.has_value()},
                                {"committed", status.membership_committed}};
  for (const SettingWord& word : settings_words(settings)) out[word.name] = word.value;
  out["usable"] = format_duration(settings.timing.usable(settings.timing.lease));
  return text_of(out);
}

std::string status_json(const std::vector<node::NodeStatus>& statuses, const ServerState& state,
                        const ServedGroups& groups, std::size_t selected) {
  const node::NodeStatus& status = statuses[selected];
  const ServedGroup& group = groups.all()[selected];
  const kv::Store& store = group.store;
  nlohmann::ordered_json missing = nlohmann::ordered_json::array();
  for (const raft::NodeId id : status.missing) missing.push_back(id.value());
  nlohmann::ordered_json out = {
      {"id", status.id.value()},
      {"role", role_name(status.role)},
      {"term", status.term.value()},
      {"leader", status.leader.value()},
      {"commit", status.commit.value()},
      {"applied", status.applied.value()},
      {"lease_left", milliseconds(status.lease_left)},
      {"members", member_list(status)},
      {"membership", membership_place(status)},
      {"joining", status.joining},
      {"witness", status.witness},
      {"peer_address", status.address},
      {"client_address", state.options.advertise},
      {"formed", status.formed},
      {"missing", missing},
      {"last", status.last.value()},
      {"durable", status.durable.value()},
      {"first", status.first.value()},
      {"log_bytes", status.log_bytes},
      {"disk_full", status.disk_full},
      {"feature_level", status.level},
      {"snapshots", snapshots_json(status)},
      {"store_durable", status.machine_durable.value()},
      {"backup", backup_json(group.backups)},
      {"state", state_json(group.health)},
      {"keys", store.size()},
      {"fenced_keys", store.fences()},
      {"revision", store.revision()},
      {"version", kVersion},
      {"pid", getpid()},
      {"uuid", hex(status.uuid)},
      {"incarnation", status.incarnation.value()},
      {"problem", status.problem},
      {"uptime_s", uptime_seconds(state)},
      {"rss_bytes", resident_bytes()},
      {"lease_reads", state.options.lease_reads},
      {"reads", counts_json(std::begin(kReadCounts), std::size(kReadCounts), state)},
      {"writes", counts_json(std::begin(kWriteCounts), std::size(kWriteCounts), state)},
      {"clients", counts_json(std::begin(kClientCounts), std::size(kClientCounts), state)},
      {"watches", watches_json(state, store.events().figures())},
      {"node", driver_json(status)},
  };
  if (groups.many()) {
    out["groups"] = groups_json(statuses, selected, state.options.node_of(status.id));
  }
  return text_of(out);
}

}  // namespace leasehold::server
