// The state machine of the simulator: registers, the sessions of their writers, and leases.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/kv/events.h>
#include <leasehold/replica/session_table.h>
#include <leasehold/replica/state_machine.h>
#include <leasehold/sim/world/lease_cells.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::sim {

/// A snapshot whose bytes are in memory.
class SnapshotBytes : public replica::Snapshot {
 public:
  /// `bytes` is not empty.
  SnapshotBytes(raft::Index last, Bytes bytes) : last_(last), bytes_(std::move(bytes)) {}
  raft::Index last() const override { return last_; }
  std::uint64_t size() const override { return bytes_.size(); }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override;
  const Bytes& bytes() const { return bytes_; }

 private:
  raft::Index last_;
  Bytes bytes_;
};

/// Registers by number. Lives on a node's disk: what was not made durable is gone after a crash,
/// and its commands are applied again.
class RegisterMachine : public replica::StateMachine {
 public:
  struct State {
    std::map<std::uint64_t, std::uint64_t> values;
    replica::SessionTable sessions;
    LeaseCells leases;
    raft::Index applied;
    /// A digest of every command that was ever applied, in order, with its index and its result:
    /// two states that agree in it came about in the same way.
    std::uint64_t history = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  enum class Kind : std::uint8_t {
    set,     ///< a register
    open,    ///< a session; its result is encode_number(id), 0 for none
    once,    ///< a register, in a session; its result is an Answer
    expire,  ///< a session that has seen no activity beyond `activity`; encode_number(1 if so)
    leases,  ///< one of the store's commands, about leases; its reply
  };
  struct Command {
    Kind kind = Kind::set;
    std::uint64_t key = 0;
    std::uint64_t value = 0;  ///< what is written; of `open` a number that no other one has
    replica::SessionId session{};
    std::uint64_t sequence = 0;
    std::uint64_t answered_below = 0;
    std::uint64_t activity = 0;
    std::string of_store{};  ///< the bytes of a kv::Command

    bool writes() const { return kind == Kind::set || kind == Kind::once; }
  };
  /// What came of a command of a session. Where it was executed: of the one time when it was.
  struct Answer {
    replica::SessionTable::Verdict verdict = replica::SessionTable::Verdict::no_session;
    std::uint64_t value = 0;
    raft::Index executed_at;
  };
  /// What one command did.
  struct Done {
    Bytes result;
    bool wrote = false;  ///< a register
    /// What watchers of the store's keys have to learn.
    std::vector<kv::Revision> told{};
  };

  /// `seed` decides the bytes of the snapshots. `limits`: of what is kept for watchers.
  explicit RegisterMachine(std::uint64_t seed = 0, kv::EventHistory::Limits limits = {})
      : seed_(seed), events_(limits) {}

  static Bytes encode(const Command& command);
  /// None: not a command.
  static std::optional<Command> decode_command(std::string_view bytes);
  /// Of a `set` the value is the result.
  static Bytes encode_number(std::uint64_t number);
  static std::optional<std::uint64_t> decode_number(std::string_view result);
  static std::optional<Answer> decode_answer(std::string_view result);
  static Done apply_to(State& state, raft::LogId id, const Command& command);
  /// The bytes of a snapshot. They look different for each `nonce`, from the first to the last, so
  /// that parts of two snapshots of one state never make a good one.
  static std::string encode(const State& state, std::uint64_t nonce);
  static std::optional<State> decode(std::string_view bytes);

  raft::Index durable_index() const override { return durable_.applied; }
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands,
                           raft::Index last) override;
  Result<raft::Index> make_durable() override;
  Result<std::shared_ptr<const replica::Snapshot>> take_snapshot() override;
  Result<void> install_snapshot(const replica::Snapshot& snapshot) override;

  /// 0 for a register that was never set.
  std::uint64_t value(std::uint64_t key) const;
  raft::Index applied() const { return present_.applied; }
  const State& present() const { return present_; }

  /// What was present at some earlier time survives a crash from now on. Never moves back.
  void make_durable(const State& earlier);
  void crash();
  /// What the latest revisions of the store's keys changed; a process's own.
  const kv::EventHistory& events() const { return events_; }

  /// Commands that did not decode. None is ever proposed, so one is a bug.
  std::uint64_t malformed() const { return malformed_; }

 private:
  std::uint64_t seed_;
  std::uint64_t snapshots_ = 0;
  State present_;
  State durable_;
  kv::EventHistory events_;
  std::uint64_t malformed_ = 0;
};

}  // namespace leasehold::sim
