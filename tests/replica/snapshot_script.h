// A state machine with snapshots, and its Snapshots port, moved by hand.
#pragma once

#include <leasehold/base/assert.h>
#include <leasehold/replica/driver.h>
#include <leasehold/replica/state_machine.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::replica::testing {

/// The state of a RecordingMachine up to some entry.
struct Recorded {
  raft::Index last;
  std::vector<std::string> commands;

  std::string bytes() const {
    std::string all = std::to_string(last.value()) + "\n";
    for (const std::string& command : commands) all += command + "\n";
    return all;
  }
  static Recorded from(const std::string& bytes) {
    Recorded recorded;
    std::size_t at = 0;
    for (std::size_t end = bytes.find('\n'); end != std::string::npos;
         at = end + 1, end = bytes.find('\n', at)) {
      const std::string line = bytes.substr(at, end - at);
      if (at == 0) {
        recorded.last = raft::Index(std::stoull(line));
      } else {
        recorded.commands.push_back(line);
      }
    }
    return recorded;
  }
};

/// Remembers the commands that it was given; answers each with "done:" and the command.
class RecordingMachine : public StateMachine {
 public:
  RecordingMachine() = default;
  explicit RecordingMachine(Recorded state) : state_(std::move(state)) {}

  raft::Index durable_index() const override { return raft::Index(0); }
  std::vector<Bytes> apply(const std::vector<Command>& commands, raft::Index last) override {
    LEASEHOLD_ASSERT(last > state_.last);
    state_.last = last;
    std::vector<Bytes> results;
    for (const Command& command : commands) {
      state_.commands.emplace_back(command.bytes);
      origins_.push_back(command.origin);
      results.emplace_back("done:" + std::string(command.bytes));
    }
    return results;
  }
  const std::vector<std::string>& commands() const { return state_.commands; }
  /// Whose commands they were.
  const std::vector<raft::NodeId>& origins() const { return origins_; }
  const Recorded& state() const { return state_; }
  void install(Recorded state) { state_ = std::move(state); }

 private:
  std::vector<raft::NodeId> origins_;
  Recorded state_;
};

/// Answers nothing before finish(). What has arrived is whole when the last byte is there.
class SnapshotScript final : public Snapshots {
 public:
  struct ReadCall {
    std::uint64_t token = 0;
    std::uint64_t tag = 0;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
  };
  struct Arrived {
    raft::SnapshotId id;
    std::string data;
  };

  explicit SnapshotScript(const RecordingMachine& machine) : machine_(machine) {}

  bool waiting() const { return durables_ + takes_ > 0 || !reads_.empty() || !stores_.empty(); }
  std::size_t takes_waiting() const { return takes_; }
  const std::deque<ReadCall>& reads() const { return reads_; }
  const std::deque<raft::ReceivedChunk>& stores() const { return stores_; }
  std::size_t held() const { return taken_.size(); }
  std::size_t discarded() const { return discarded_; }
  const std::optional<Arrived>& complete() const { return complete_; }
  /// What the state machine has made durable.
  const Recorded& durable() const { return durable_; }
  void set_durable(Recorded state) { durable_ = std::move(state); }
  void forget_arrived() { incoming_.reset(); }
  void forget_complete() { complete_.reset(); }

  /// The machine has no such thing.
  bool unsupported = false;
  /// It cannot store anything now.
  bool refuses = false;
  /// It answers with what was durable before: more was applied while it wrote.
  bool lags = false;

  /// Answers everything that waits.
  void finish(const std::function<void(Event)>& answer) {
    for (; durables_ > 0; --durables_) {
      if (unsupported) {
        answer(MachineDurable{Error{ErrorCode::unsupported, "not here"}});
        continue;
      }
      if (!lags) durable_ = machine_.state();
      answer(MachineDurable{durable_.last});
    }
    for (; takes_ > 0; --takes_) {
      const std::string bytes = machine_.state().bytes();
      const TakenSnapshot taken{machine_.state().last, ++last_tag_, bytes.size()};
      taken_.emplace(taken.tag, bytes);
      answer(SnapshotTaken{taken});
    }
    for (const ReadCall& call : std::exchange(reads_, {})) {
      const auto found = taken_.find(call.tag);
      LEASEHOLD_ASSERT(found != taken_.end());
      LEASEHOLD_ASSERT(call.offset + call.bytes <= found->second.size());
      answer(SnapshotRead{call.token, Bytes(found->second.substr(call.offset, call.bytes))});
    }
    for (const raft::ReceivedChunk& received : std::exchange(stores_, {})) answer(add(received));
  }

  void make_durable() override { ++durables_; }
  void take() override { ++takes_; }
  void read(std::uint64_t token, std::uint64_t tag, std::uint64_t offset,
            std::size_t bytes) override {
    reads_.push_back({token, tag, offset, bytes});
  }
  void release(std::uint64_t tag) override { LEASEHOLD_ASSERT(taken_.erase(tag) == 1); }
  void store(const raft::ReceivedChunk& received) override { stores_.push_back(received); }
  void discard() override {
    ++discarded_;
    complete_.reset();
  }

 private:
  ChunkStored add(const raft::ReceivedChunk& received) {
    const raft::SnapshotChunk& chunk = received.chunk;
    ChunkStored answer;
    answer.stored.from = received.from;
    answer.stored.request_term = chunk.term;
    answer.stored.round = chunk.round;
    answer.stored.id = chunk.id;
    answer.stored.refused = refuses || (complete_ && complete_->id != chunk.id);
    if (answer.stored.refused) return answer;
    if (complete_) {
      answer.stored.offset = chunk.size;
      return answer;
    }
    if (!incoming_ || incoming_->id != chunk.id) {
      if (chunk.offset != 0) return answer;
      incoming_ = Arrived{chunk.id, {}};
    }
    std::string& data = incoming_->data;
    if (chunk.offset == data.size()) data += chunk.data.view();
    answer.stored.offset = data.size();
    if (data.size() == chunk.size) {
      complete_ = std::exchange(incoming_, std::nullopt);
      answer.complete = chunk.membership;
    }
    return answer;
  }

  const RecordingMachine& machine_;
  std::size_t durables_ = 0;
  std::size_t takes_ = 0;
  std::deque<ReadCall> reads_;
  std::deque<raft::ReceivedChunk> stores_;
  std::map<std::uint64_t, std::string> taken_;
  std::uint64_t last_tag_ = 0;
  std::size_t discarded_ = 0;
  std::optional<Arrived> incoming_;
  std::optional<Arrived> complete_;
  Recorded durable_;
};

}  // namespace leasehold::replica::testing
