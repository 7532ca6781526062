// What an entry costs the three cores of a group together: one thread plays the network, the disks
// and the client, without waiting for any of them. See bench/README.md.

#include <benchmark/benchmark.h>
#include <leasehold/base/assert.h>
#include <leasehold/bench/thread_seconds.h>
#include <leasehold/raft/core.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::bench {
namespace {

constexpr std::uint64_t kVoters = 3;
constexpr std::size_t kPayloadBytes = 16;
/// As a node has it: an append carries the news of the commit before.
constexpr raft::Duration kCommitNewsDelay = std::chrono::milliseconds(5);
/// Entries that each core keeps behind what it has applied.
constexpr std::uint64_t kKept = 4096;

class CoreGroup {
 public:
  CoreGroup() {
    raft::InitialState initial;
    for (std::uint64_t id = 1; id <= kVoters; ++id) {
      initial.base_membership.members.push_back(
          {raft::NodeId(id), raft::Uuid{id, id}, fmt::format("node{}", id)});
      initial.base_membership.voters.push_back(raft::NodeId(id));
    }
    replicas_.reserve(kVoters);
    for (std::uint64_t id = 1; id <= kVoters; ++id) {
      raft::CoreOptions options;
      options.id = raft::NodeId(id);
      options.uuid = raft::Uuid{id, id};
      options.incarnation = raft::Incarnation(1);
      options.seed = id;
      options.commit_news_delay = kCommitNewsDelay;
      replicas_.push_back(Replica{raft::Core(options, initial, now_), {}, {}});
    }
    while (leader().core.role() != raft::Role::leader) {
      advance(leader().core.next_deadline() - now_.promise);
      leader().core.tick(now_);
      settle();
    }
  }

  /// Returns once the entries are applied at the leader. Its followers learn that with what comes
  /// next, or with a heartbeat.
  void append(std::size_t entries) {
    advance(std::chrono::microseconds(1));
    if (next_tick_ <= now_.promise) tick();
    leader().core.propose(now_, std::vector<Bytes>(entries, payload_));
    settle();
    LEASEHOLD_ASSERT(leader().applied == leader().core.log().last_index());
  }

 private:
  struct Replica {
    raft::Core core;
    raft::Ready ready;
    raft::Index applied;
  };
  struct Envelope {
    std::uint64_t from;
    std::uint64_t to;
    raft::Message message;
  };

  Replica& leader() { return replicas_.front(); }

  void advance(raft::Duration span) {
    now_.holder = now_.holder + span;
    now_.promise = now_.promise + span;
  }
  void tick() {
    next_tick_ = raft::PromiseInstant::never();
    for (Replica& replica : replicas_) {
      replica.core.tick(now_);
      const raft::Index applied = replica.applied;
      if (applied.value() > replica.core.log().base().index.value() + 2 * kKept) {
        replica.core.cut_log(now_, raft::Index(applied.value() - kKept));
      }
      next_tick_ = std::min(next_tick_, replica.core.next_deadline());
    }
  }
  /// Until nothing is on its way.
  void settle() {
    for (std::uint64_t id = 1; id <= kVoters; ++id) drain(id);
    while (!network_.empty()) {
      arrives_.swap(network_);
      for (Envelope& one : arrives_) {
        replicas_[one.to - 1].core.step(now_, {raft::NodeId(one.from), {one.from, one.from}, {}},
                                        std::move(one.message));
        drain(one.to);
      }
      arrives_.clear();
    }
  }
  void drain(std::uint64_t id) {
    Replica& replica = replicas_[id - 1];
    raft::Ready& ready = replica.ready;
    while (replica.core.take_ready(ready)) {
      for (raft::OutgoingMessage& out : ready.messages) {
        network_.push_back({id, out.to.value(), std::move(out.message)});
      }
      for (const raft::AppendIntent& intent : ready.intents) fill(id, intent);
      if (!ready.persist.empty()) replica.core.persisted(now_, ready.persist.id);
      // Every batch is durable by now.
      for (raft::HeldMessage& held : ready.held) {
        network_.push_back({id, held.to.value(), std::move(held.message)});
      }
      if (ready.apply_to == raft::Index(0)) continue;
      replica.applied = ready.apply_to;
      replica.core.applied(now_, replica.applied);
    }
  }
  /// All entries have the same payload, and the term of the last one.
  void fill(std::uint64_t id, const raft::AppendIntent& intent) {
    raft::Core& core = replicas_[id - 1].core;
    raft::AppendRequest request;
    request.term = intent.term;
    request.prev = intent.prev;
    request.commit = intent.commit;
    request.round = intent.round;
    request.lease = intent.lease;
    request.drift_ppm = intent.drift_ppm;
    request.entries.reserve(intent.last - intent.prev.index);
    for (raft::Index at = intent.prev.index.next(); at <= intent.last; at = at.next()) {
      const bool first = at.value() == 1;
      request.entries.push_back({{core.log().term_at(at).value(), at},
                                 first ? raft::EntryKind::empty : raft::EntryKind::command,
                                 first ? Bytes() : payload_});
    }
    const std::size_t bytes = request.entries.size() * kPayloadBytes;
    network_.push_back({id, intent.to.value(), std::move(request)});
    core.filled(now_, intent, intent.last, bytes);
  }

  const Bytes payload_ = Bytes(std::string(kPayloadBytes, 'v'));
  raft::Now now_{raft::HolderInstant(std::chrono::hours(1)),
                 raft::PromiseInstant(std::chrono::hours(1))};
  raft::PromiseInstant next_tick_ = raft::PromiseInstant::earliest();
  std::vector<Replica> replicas_;
  std::vector<Envelope> network_;  ///< in the order in which they leave
  std::vector<Envelope> arrives_;
};

/// One client that waits for each of its appends, which has so many entries.
void entries(benchmark::State& state) {
  CoreGroup group;
  const auto batch = static_cast<std::size_t>(state.range(0));
  for (std::size_t i = 0; i < 2 * kKept; ++i) group.append(1);
  const std::size_t appends = 4096 / batch + 1;
  for (auto unused : state) {
    static_cast<void>(unused);
    const double begin = thread_seconds();
    for (std::size_t i = 0; i < appends; ++i) group.append(batch);
    state.SetIterationTime(thread_seconds() - begin);
  }
  state.counters["entries"] = benchmark::Counter(static_cast<double>(appends * batch),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(entries)->ArgName("batch")->Arg(1)->Arg(64)->Arg(512)->UseManualTime();

}  // namespace
}  // namespace leasehold::bench

BENCHMARK_MAIN();
