// A leader alone: the bare core, of which one thread plays disk, network and peers.
#pragma once

#include <leasehold/raft/core.h>

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::bench {

/// Acknowledgements that may be out.
inline constexpr std::uint64_t kOutstandingMax = 64;

/// Node 1 of a group of `voters`, which leads. The other nodes are not there:
/// acknowledge() speaks for them.
class BareLeader {
 public:
  explicit BareLeader(std::uint64_t voters)
      : voters_(voters), core_(options(), initial(voters), now_) {
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
  /// Entries are appended, durable here, and sent to every peer.
  void append(std::size_t entries = 1) {
    core_.propose(now_, std::vector<Bytes>(entries, Bytes(std::string("value"))));
    drain();
  }
  void ask(std::uint64_t reads) {
    for (std::uint64_t i = 0; i < reads; ++i) {
      core_.read_index(now_, ++read_, raft::ReadMode::quorum);
    }
  }
  void acknowledge(std::uint64_t id, raft::Round round, raft::Index match) {
    raft::AppendReply reply;
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
  raft::Round round() const { return round_; }
  const raft::Core& core() const { return core_; }

 private:
  static raft::CoreOptions options() {
    raft::CoreOptions options;
    options.id = raft::NodeId(1);
    options.uuid = raft::Uuid{1, 1};
    options.incarnation = raft::Incarnation(1);
    options.timing.heartbeat = std::chrono::milliseconds(1);
    options.inflight_messages_max = kOutstandingMax * 2;
    return options;
  }
  static raft::InitialState initial(std::uint64_t voters) {
    raft::InitialState state;
    for (std::uint64_t id = 1; id <= voters; ++id) {
      state.base_membership.members.push_back(
          {raft::NodeId(id), raft::Uuid{id, id}, fmt::format("node{}", id)});
      state.base_membership.voters.push_back(raft::NodeId(id));
    }
    return state;
  }
  static raft::Peer peer(std::uint64_t id) {
    return raft::Peer{raft::NodeId(id), raft::Uuid{id, id}};
  }

  void advance(raft::Duration span) {
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
  raft::Now now_{raft::HolderInstant(std::chrono::hours(1)),
                 raft::PromiseInstant(std::chrono::hours(1))};
  raft::Core core_;
  raft::Ready ready_;
  raft::Round round_;
  std::uint64_t read_ = 0;
};

}  // namespace leasehold::bench
