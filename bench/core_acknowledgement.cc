// What one acknowledgement costs a leader: step() and take_ready() of the bare core, on one thread,
// without a disk and without a network. To compare two trees, build this in both and let the two
// programs alternate; see bench/README.md.

#include <benchmark/benchmark.h>
#include <leasehold/raft/core.h>

#include <fmt/format.h>

#include <ctime>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::bench {
namespace {

using raft::AppendReply;
using raft::Core;
using raft::Duration;
using raft::Index;
using raft::NodeId;
using raft::Now;
using raft::Peer;
using raft::Ready;
using raft::Round;

/// Acknowledgements that are out when the first of them comes in.
constexpr std::uint64_t kOutstanding = 64;
constexpr std::uint64_t kReads = 256;

/// Node 1 of a group of `voters`, which leads. The other nodes are not there: `answer` speaks for
/// them.
class Leader {
 public:
  explicit Leader(std::uint64_t voters) : voters_(voters), core_(options(), initial(voters), now_) {
    drain();
    while (core_.role() != raft::Role::leader) {
      advance(core_.next_deadline() - now_.promise);
      core_.tick(now_);
      drain();
      for (std::uint64_t id = 2; id <= voters_; ++id) {
        const raft::Term term = core_.term();
        core_.step(now_, peer(id), raft::PreVoteReply{term.next(), term, true, raft::kNobody});
        drain();
        core_.step(now_, peer(id),
                   raft::VoteReply{core_.term(), core_.term(), true, raft::kNobody});
        drain();
      }
    }
    acknowledge_all();
  }

  /// A round begins, a millisecond after the one before.
  void begin_round() {
    advance(core_.next_deadline() - now_.promise);
    core_.tick(now_);
    drain();
  }
  /// An entry is appended, durable here, and sent to every peer.
  void append() {
    core_.propose(now_, {Bytes(std::string("value"))});
    drain();
  }
  void ask(std::uint64_t reads) {
    for (std::uint64_t i = 0; i < reads; ++i) {
      core_.read_index(now_, ++read_, raft::ReadMode::quorum);
    }
  }
  void acknowledge(std::uint64_t id, Round round, Index match) {
    AppendReply reply;
    reply.request_term = core_.term();
    reply.term = core_.term();
    reply.promised = true;
    reply.round = round;
    reply.matched = true;
    reply.index = match;
    core_.step(now_, peer(id), reply);
    drain();
  }
  /// The messages of all nodes that are on their way, and the reads that wait.
  void acknowledge_all() {
    do {
      for (std::uint64_t id = 2; id <= voters_; ++id) {
        acknowledge(id, round_, core_.log().last_index());
      }
    } while (core_.pending_reads() > 0);
  }

  std::uint64_t voters() const { return voters_; }
  Round round() const { return round_; }
  const Core& core() const { return core_; }

 private:
  static raft::CoreOptions options() {
    raft::CoreOptions options;
    options.id = NodeId(1);
    options.uuid = raft::Uuid{1, 1};
    options.incarnation = raft::Incarnation(1);
    options.timing.heartbeat = std::chrono::milliseconds(1);
    options.inflight_messages_max = kOutstanding * 2;
    return options;
  }
  static raft::InitialState initial(std::uint64_t voters) {
    raft::InitialState state;
    for (std::uint64_t id = 1; id <= voters; ++id) {
      state.base_membership.members.push_back(
          {NodeId(id), raft::Uuid{id, id}, fmt::format("node{}", id)});
      state.base_membership.voters.push_back(NodeId(id));
    }
    return state;
  }
  static Peer peer(std::uint64_t id) { return Peer{NodeId(id), raft::Uuid{id, id}}; }

  void advance(Duration span) {
    now_.holder = now_.holder + span;
    now_.promise = now_.promise + span;
  }
  void drain() {
    while (core_.take_ready(ready_)) {
      for (const raft::OutgoingMessage& out : ready_.messages) {
        const auto* append = std::get_if<raft::AppendRequest>(&out.message);
        if (append != nullptr && append->round > round_) round_ = append->round;
      }
      for (const raft::AppendIntent& intent : ready_.intents) {
        core_.filled(now_, intent, intent.last, 5);
      }
      if (!ready_.persist.empty()) core_.persisted(now_, ready_.persist.id);
    }
  }

  const std::uint64_t voters_;
  Now now_{raft::HolderInstant(std::chrono::hours(1)), raft::PromiseInstant(std::chrono::hours(1))};
  Core core_;
  Ready ready_;
  Round round_;
  std::uint64_t read_ = 0;
};

/// What this thread has used of a processor: a busy machine does not count.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Lets `state` count the time of `acknowledge`, which takes in `count` acknowledgements.
template <class Acknowledge>
void measure(benchmark::State& state, std::uint64_t count, const Acknowledge& acknowledge) {
  const double begin = thread_seconds();
  acknowledge();
  state.SetIterationTime(thread_seconds() - begin);
  state.counters["per_acknowledgement"] =
      benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}

/// Of a heartbeat: each of many rounds is acknowledged by each peer; `reads` of them wait.
void rounds(benchmark::State& state) {
  Leader leader(static_cast<std::uint64_t>(state.range(0)));
  const auto reads = static_cast<std::uint64_t>(state.range(1));
  const Index match = leader.core().log().last_index();
  for (auto unused : state) {
    static_cast<void>(unused);
    const Round first = leader.round().next();
    for (std::uint64_t i = 0; i < kOutstanding; ++i) leader.begin_round();
    leader.ask(reads);
    measure(state, kOutstanding * (leader.voters() - 1), [&] {
      for (std::uint64_t i = 0; i < kOutstanding; ++i) {
        for (std::uint64_t id = 2; id <= leader.voters(); ++id) {
          leader.acknowledge(id, first + i, match);
        }
      }
    });
    leader.acknowledge_all();
  }
}

/// Of entries: many are out, and each acknowledgement takes in one of them.
void entries(benchmark::State& state) {
  Leader leader(static_cast<std::uint64_t>(state.range(0)));
  const auto reads = static_cast<std::uint64_t>(state.range(1));
  for (auto unused : state) {
    static_cast<void>(unused);
    const Index first = leader.core().log().last_index().next();
    leader.begin_round();
    for (std::uint64_t i = 0; i < kOutstanding; ++i) leader.append();
    leader.ask(reads);
    measure(state, kOutstanding * (leader.voters() - 1), [&] {
      for (std::uint64_t i = 0; i < kOutstanding; ++i) {
        for (std::uint64_t id = 2; id <= leader.voters(); ++id) {
          leader.acknowledge(id, leader.round(), first + i);
        }
      }
    });
    leader.acknowledge_all();
  }
}

void voters_and_reads(benchmark::internal::Benchmark* of) {
  of->ArgNames({"voters", "reads"})->UseManualTime();
  for (const std::int64_t voters : {3, 5}) {
    for (const std::int64_t reads : {std::int64_t{0}, std::int64_t{kReads}}) {
      of->Args({voters, reads});
    }
  }
}

BENCHMARK(rounds)->Apply(voters_and_reads);
BENCHMARK(entries)->Apply(voters_and_reads);

}  // namespace
}  // namespace leasehold::bench

BENCHMARK_MAIN();
