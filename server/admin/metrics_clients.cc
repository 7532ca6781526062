// What clients do here.
#include <leasehold/server/admin/metrics.h>

#include <iterator>
#include <tuple>

namespace leasehold::server {
namespace {

using enum MetricType;

/// Counts of one family, told apart by the value of a label.
struct LabelledCounts {
  MetricSpec spec;
  const char* label;
  std::vector<std::tuple<const char*, Count Counters::*>> counts;
};

const LabelledCounts kLabelled[] = {
    {{"leasehold_reads_total", counter, "Reads of clients, by the way that they took first."},
     "way",
     {{"lease_hit", &Counters::lease_hits},
      {"lease_wait", &Counters::lease_waits},
      {"lease_fallback", &Counters::lease_fallbacks},
      {"quorum", &Counters::quorum_asked},
      {"log", &Counters::log_asked},
      {"stale_hit", &Counters::stale_hits}}},
    {{"leasehold_reads_answered_total", counter,
      "Reads that were not answered at once, by what justified the answer."},
     "basis",
     {{"lease", &Counters::answered_lease},
      {"quorum", &Counters::answered_quorum},
      {"leader", &Counters::answered_leader},
      {"log", &Counters::answered_log}}},
    {{"leasehold_writes_ended_total", counter, "Writes of clients that have ended, by how."},
     "outcome",
     {{"committed", &Counters::writes_committed},
      {"dropped", &Counters::writes_dropped},
      {"unknown", &Counters::writes_unknown}}},
    {{"leasehold_connections_closed_total", counter,
      "Connections of clients that this node refused or closed, by the reason."},
     "reason",
     {{"too_many", &Counters::connections_refused},
      {"displaced", &Counters::connections_displaced},
      {"protected", &Counters::connections_denied},
      {"memory", &Counters::connections_large},
      {"slow", &Counters::connections_slow},
      {"http", &Counters::http_requests},
      {"idle", &Counters::connections_idle},
      {"protocol", &Counters::protocol_errors},
      {"distrusted", &Counters::tls_distrusted}}},
    {{"leasehold_tls_handshakes_failed_total", counter,
      "Handshakes of TLS at the client port that failed, by the reason."},
     "reason",
     {{"plain", &Counters::tls_failed_plain},
      {"protocol", &Counters::tls_failed_protocol},
      {"certificate", &Counters::tls_failed_certificate},
      {"refused", &Counters::tls_failed_refused},
      {"late", &Counters::tls_failed_late},
      {"crowded", &Counters::tls_failed_crowded}}},
};

struct OneCount {
  MetricSpec spec;
  Count Counters::*count;
};
constexpr OneCount kCounts[] = {
    {{"leasehold_commands_total", counter, "Commands of clients, the refused ones included."},
     &Counters::commands},
    {{"leasehold_commands_refused_total", counter,
      "Commands that are unknown, or have wrong arguments."},
     &Counters::commands_refused},
    {{"leasehold_reads_refused_total", counter,
      "Reads without an answer: no leader, overloaded, or too late."},
     &Counters::reads_refused},
    {{"leasehold_stale_fallbacks_total", counter,
      "Reads in mode stale whose bound did not hold; they went on in mode lease."},
     &Counters::stale_fallbacks},
    {{"leasehold_writes_total", counter, "Writes of clients that were proposed."},
     &Counters::writes},
    {{"leasehold_connections_total", counter, "Connections of clients that were accepted."},
     &Counters::connections},
    {{"leasehold_connections_delayed_total", counter,
      "Connections that had to wait, because too many came in a second."},
     &Counters::connections_delayed},
    {{"leasehold_output_stalls_total", counter,
      "How often requests waited because their client read slowly."},
     &Counters::output_stalls},
    {{"leasehold_tls_handshakes_total", counter, "Handshakes at the client port that succeeded."},
     &Counters::tls_handshakes},
    {{"leasehold_tls_handshakes_resumed_total", counter, "Of these, continued from earlier ones."},
     &Counters::tls_resumed},
    {{"leasehold_watches_total", counter, "Watches that began."}, &Counters::watches},
    {{"leasehold_watch_messages_total", counter, "Messages to watchers and subscribers."},
     &Counters::watch_messages},
    {{"leasehold_watch_events_total", counter, "Changes in these messages."},
     &Counters::watch_events},
    {{"leasehold_watch_resyncs_total", counter,
      "Watchers that had to read again, and subscribers that were closed, since they were behind."},
     &Counters::watch_resyncs},
};

constexpr MetricSpec kKinds{"leasehold_commands_by_kind_total", counter,
                            "Commands of clients, by kind; none: those that are unknown."};
/// In the order of CommandGroup.
constexpr const char* kKindNames[] = {"string",     "generic",   "transactions",
                                      "connection", "server",    "cluster",
                                      "leasehold",  "scripting", "none"};
static_assert(std::size(kKindNames) == Counters::kKinds);
static_assert(static_cast<std::size_t>(CommandGroup::scripting) == Counters::kKinds - 2);
constexpr MetricSpec kLeaseLeft{"leasehold_lease_left_at_reads_seconds", histogram,
                                "What was left of the leader's lease when a read was answered "
                                "under it at once."};
constexpr MetricSpec kDenied{"leasehold_access_denied_total", counter,
                             "Refusals by the rules of users, by what was missing."};
constexpr MetricSpec kClients{"leasehold_clients", gauge, "Connections of clients."};
constexpr MetricSpec kClientsMax{"leasehold_clients_max", gauge, "Most connections of clients."};
constexpr MetricSpec kTlsClients{"leasehold_tls_clients", gauge, "Connections with TLS."};
constexpr MetricSpec kWatchers{"leasehold_watchers", gauge, "Connections that watch keys."};
constexpr MetricSpec kSubscribers{"leasehold_subscribers", gauge, "Connections that subscribe."};
constexpr MetricSpec kMemory{"leasehold_client_memory_bytes", gauge,
                             "Memory of requests and replies under way."};
constexpr MetricSpec kMemoryMax{"leasehold_client_memory_max_bytes", gauge, "Most such memory."};
constexpr MetricSpec kInput{"leasehold_client_input_bytes", gauge, "Bytes of unfinished requests."};
constexpr MetricSpec kSlow{"leasehold_slow_commands", gauge, "Slow commands kept for SLOWLOG."};

constexpr MetricSpec kSpans{"leasehold_spans_written_total", counter,
                            "Spans that were written to the file of --spans."};
constexpr MetricSpec kSpansLost{"leasehold_spans_lost_total", counter,
                                "Spans that were not, by the reason."};

void lease_left(const ServerState& state, MetricsText& page) {
  std::vector<std::uint64_t> counts(Counters::kLeaseBuckets);
  std::uint64_t sum = 0;
  for (const Counters& of_thread : state.counters) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      counts[i] += of_thread.lease_left_at_hits[i].value();
    }
    sum += of_thread.lease_left_sum.value();
  }
  std::vector<double> bounds;
  for (std::size_t i = 0; i + 1 < counts.size(); ++i) {
    bounds.push_back(static_cast<double>(std::uint64_t{1} << (i + Counters::kLeaseUnitBits)) / 1e9);
  }
  page.family(kLeaseLeft).histogram(bounds, counts, static_cast<double>(sum) / 1e9);
}

}  // namespace

void client_metrics(const MetricsSource& source, MetricsText& page) {
  const ServerState& state = source.state;
  for (const OneCount& one : kCounts) page.one(one.spec, state.sum(one.count));
  for (const LabelledCounts& family : kLabelled) {
    page.family(family.spec);
    for (const auto& [value, count] : family.counts) {
      page.add(state.sum(count), {{family.label, value}});
    }
  }
  page.family(kKinds);
  for (std::size_t i = 0; i < Counters::kKinds; ++i) {
    std::uint64_t total = 0;
    for (const Counters& of_thread : state.counters) total += of_thread.commands_of_kind[i].value();
    page.add(total, {{"kind", kKindNames[i]}});
  }
  lease_left(state, page);
  page.family(kDenied);
  for (const AclReason reason :
       {AclReason::auth, AclReason::command, AclReason::key, AclReason::channel}) {
    page.add(state.accounts.log.refused(reason), {{"reason", acl_reason_name(reason)}});
  }
  page.one(kClients, std::uint64_t{state.clients.load(std::memory_order_relaxed)});
  page.one(kClientsMax, std::uint64_t{state.live.clients_max()});
  page.one(kTlsClients, std::uint64_t{state.tls_clients.load(std::memory_order_relaxed)});
  page.one(kWatchers, std::uint64_t{state.watchers.load(std::memory_order_relaxed)});
  page.one(kSubscribers, std::uint64_t{state.subscribers.load(std::memory_order_relaxed)});
  page.one(kMemory, std::uint64_t{state.client_memory.used()});
  page.one(kMemoryMax, std::uint64_t{state.options.client_memory_max});
  page.one(kInput, std::uint64_t{state.input_bytes.load(std::memory_order_relaxed)});
  page.one(kSlow, std::uint64_t{state.slow_log.size()});
  const SpanCounts spans = state.options.spans();
  page.one(kSpans, spans.written);
  page.family(kSpansLost);
  page.add(spans.crowded, {{"reason", "crowded"}});
  page.add(spans.unwritten, {{"reason", "file"}});
}

}  // namespace leasehold::server
