// The state machine of the simulator: registers.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/node/state_machine.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::sim {

/// A snapshot whose bytes are in memory.
class SnapshotBytes : public node::Snapshot {
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
class RegisterMachine : public node::StateMachine {
 public:
  struct State {
    std::map<std::uint64_t, std::uint64_t> values;
    raft::Index applied;
    /// A digest of every command that was ever applied, in order, with its index: two states that
    /// agree in it came about in the same way.
    std::uint64_t history = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  struct Set {
    std::uint64_t key = 0;
    std::uint64_t value = 0;
  };

  /// `seed` decides the bytes of the snapshots.
  explicit RegisterMachine(std::uint64_t seed = 0) : seed_(seed) {}

  /// The command that sets `key` to `value`. Its result is encode_value(value).
  static Bytes encode_set(std::uint64_t key, std::uint64_t value);
  static Bytes encode_value(std::uint64_t value);
  /// None: not a command.
  static std::optional<Set> decode_set(std::string_view command);
  static void apply_to(State& state, raft::Index index, const Set& set);
  /// The bytes of a snapshot. They look different for each `nonce`, from the first to the last, so
  /// that parts of two snapshots of one state never make a good one.
  static std::string encode(const State& state, std::uint64_t nonce);
  static std::optional<State> decode(std::string_view bytes);

  raft::Index durable_index() const override { return durable_.applied; }
  std::vector<Bytes> apply(const std::vector<node::Command>& commands, raft::Index last) override;
  Result<raft::Index> make_durable() override;
  Result<std::shared_ptr<const node::Snapshot>> take_snapshot() override;
  Result<void> install_snapshot(const node::Snapshot& snapshot) override;

  /// 0 for a register that was never set.
  std::uint64_t value(std::uint64_t key) const;
  raft::Index applied() const { return present_.applied; }
  const State& present() const { return present_; }

  /// What was present at some earlier time survives a crash from now on. Never moves back.
  void make_durable(const State& earlier);
  void crash() { present_ = durable_; }

  /// Commands that did not decode. None is ever proposed, so one is a bug.
  std::uint64_t malformed() const { return malformed_; }

 private:
  std::uint64_t seed_;
  std::uint64_t snapshots_ = 0;
  State present_;
  State durable_;
  std::uint64_t malformed_ = 0;
};

}  // namespace leasehold::sim
