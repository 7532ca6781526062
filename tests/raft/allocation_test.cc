// A leader handles an acknowledgement without an allocation, whatever waits.
#include <gtest/gtest.h>
#include <leasehold/raft/core.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>

namespace {
std::uint64_t allocations = 0;
}  // namespace

// Not inline: the compiler would see malloc() and free() instead, and call them no pair.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size != 0 ? size : 1)) return memory;
  std::abort();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace leasehold::raft {
namespace {

/// Node 1 of five, which leads. The others are what the test says that they answer.
class Allocation : public testing::Test {
 protected:
  Allocation() : core_(options(), initial(), now_) {
    drain();
    while (core_.role() != Role::leader) {
      tick();
      for (std::uint64_t id = 2; id <= 5; ++id) {
        const Term term = core_.term();
        step(id, PreVoteReply{term.next(), term, true, kNobody});
        step(id, VoteReply{core_.term(), core_.term(), true, kNobody});
      }
    }
  }

  static CoreOptions options() {
    CoreOptions options;
    options.id = NodeId(1);
    options.uuid = Uuid{1, 1};
    options.incarnation = Incarnation(1);
    return options;
  }
  static InitialState initial() {
    InitialState state;
    for (std::uint64_t id = 1; id <= 5; ++id) {
      state.base_membership.members.push_back({NodeId(id), Uuid{id, id}, "n" + std::to_string(id)});
      state.base_membership.voters.push_back(NodeId(id));
    }
    return state;
  }
  void tick() {
    const Duration span = core_.next_deadline() - now_.promise;
    now_ = Now{now_.holder + span, now_.promise + span};
    core_.tick(now_);
    drain();
  }
  void step(std::uint64_t from, Message message) {
    core_.step(now_, Peer{NodeId(from), Uuid{from, from}}, std::move(message));
    drain();
  }
  void acknowledge(std::uint64_t from) {
    AppendReply reply;
    reply.request_term = core_.term();
    reply.term = core_.term();
    reply.promised = true;
    reply.round = round_;
    reply.matched = true;
    reply.index = core_.log().last_index();
    step(from, reply);
  }
  void acknowledge_all() {
    for (std::uint64_t id = 2; id <= 5; ++id) acknowledge(id);
  }
  void drain() {
    while (core_.take_ready(ready_)) {
      for (const OutgoingMessage& out : ready_.messages) {
        if (const auto* append = std::get_if<AppendRequest>(&out.message)) round_ = append->round;
      }
      for (const AppendIntent& intent : ready_.intents) core_.filled(now_, intent, intent.last, 1);
      if (!ready_.persist.empty()) core_.persisted(now_, ready_.persist.id);
    }
  }

  Now now_{HolderInstant(std::chrono::hours(1)), PromiseInstant(std::chrono::hours(1))};
  Core core_;
  Ready ready_;
  Round round_;
};

TEST_F(Allocation, NoneForAnAcknowledgement) {
  // First the vectors of a Ready grow to their sizes.
  for (int i = 0; i < 3; ++i) {
    core_.propose(now_, {Bytes(std::string("a"))});
    drain();
    tick();
    acknowledge_all();
  }
  core_.propose(now_, {Bytes(std::string("b"))});
  drain();
  tick();
  const Index commit = core_.commit_index();
  const std::uint64_t before = allocations;
  acknowledge_all();
  EXPECT_EQ(allocations, before);
  EXPECT_GT(core_.commit_index(), commit);
}

TEST_F(Allocation, NoneForAnAcknowledgementWhileReadsWait) {
  acknowledge_all();
  for (std::uint64_t i = 0; i < 100; ++i) core_.read_index(now_, i, ReadMode::quorum);
  drain();
  tick();
  const std::uint64_t before = allocations;
  acknowledge(2);
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(core_.pending_reads(), 100U);
}

}  // namespace
}  // namespace leasehold::raft
