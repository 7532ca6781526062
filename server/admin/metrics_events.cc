// Elections, votes, transfers and the disk: what EventCounts and SyncTimes have counted.
#include <leasehold/server/admin/metrics.h>

namespace leasehold::server {
namespace {

using enum MetricType;
using Reason = raft::RoleChangeReason;

constexpr MetricSpec kCampaigns{"leasehold_campaigns_total", counter,
                                "How often this node began to campaign, by the cause."};
constexpr MetricSpec kEnds{"leasehold_leaderships_ended_total", counter,
                           "How often this node left the role of the leader, by the cause."};
constexpr MetricSpec kRefusals{"leasehold_votes_refused_total", counter,
                               "Votes and pre-votes that this node refused, by the reason."};
constexpr MetricSpec kTransfers{"leasehold_transfers_ended_total", counter,
                                "Transfers of the leadership that this node began, by how they "
                                "ended; left_role is what they are for."};
constexpr MetricSpec kGained{"leasehold_leases_gained_total", counter,
                             "How often this node got the leader's lease of a group."};
constexpr MetricSpec kLost{"leasehold_leases_ended_total", counter,
                           "How often such a lease ended, given up or over."};
constexpr MetricSpec kViolations{"leasehold_protocol_violations_total", counter,
                                 "Messages that no correct member sends and that were ignored; at "
                                 "most one a second is counted."};
constexpr MetricSpec kSyncs{"leasehold_log_sync_seconds", histogram,
                            "How long the syncs of the log took."};
constexpr MetricSpec kRounds{"leasehold_round_trip_seconds", histogram,
                             "How long a quorum took to acknowledge a round of this leader, from "
                             "its beginning on: by so much a lease is shorter than its promise."};

void times(const MetricSpec& spec, const storage::TimeCounts& of, MetricsText& page) {
  std::vector<double> bounds;
  std::vector<std::uint64_t> counts;
  counts.reserve(storage::TimeCounts::kBuckets);
  for (const auto bound : storage::TimeCounts::kBounds) {
    bounds.push_back(std::chrono::duration<double>(bound).count());
  }
  for (std::size_t i = 0; i < storage::TimeCounts::kBuckets; ++i) counts.push_back(of.count(i));
  page.family(spec).histogram(bounds, counts, std::chrono::duration<double>(of.sum()).count());
}

}  // namespace

void event_metrics(const MetricsSource& source, MetricsText& page) {
  const EventCounts& events = source.events;
  page.family(kCampaigns);
  for (const Reason reason :
       {Reason::election_timeout, Reason::leader_ended, Reason::transfer, Reason::higher_term}) {
    page.add(events.campaigns(reason), {{"cause", word_of(reason)}});
  }
  page.family(kEnds);
  for (const Reason reason :
       {Reason::higher_term, Reason::leader_appeared, Reason::quorum_lost, Reason::disk_stalled,
        Reason::process_stalled, Reason::machine_stalled, Reason::removed}) {
    page.add(events.ends(reason), {{"cause", word_of(reason)}});
  }
  page.family(kRefusals);
  for (std::size_t i = 0; i < EventCounts::kRefusals; ++i) {
    const auto reason = static_cast<raft::VoteRefusal>(i);
    page.add(events.refusals(reason), {{"reason", word_of(reason)}});
  }
  page.family(kTransfers);
  for (std::size_t i = 0; i < EventCounts::kOutcomes; ++i) {
    const auto outcome = static_cast<raft::TransferOutcome>(i);
    page.add(events.transfers(outcome), {{"outcome", word_of(outcome)}});
  }
  page.one(kGained, events.leases(true));
  page.one(kLost, events.leases(false));
  page.one(kViolations, events.violations());
  times(kSyncs, source.syncs, page);
  times(kRounds, events.rounds(), page);
}

}  // namespace leasehold::server
