// Puts into an arriving snapshot what its replica holds already.
#pragma once

#include <leasehold/replica/held_blocks.h>
#include <leasehold/replica/state_machine.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::replica {

/// A snapshot that is not whole yet: it can be read below received().
class ArrivingSnapshot : public Snapshot {
 public:
  /// Everything below this has arrived.
  virtual std::uint64_t received() const = 0;
  /// Adds what comes next. Errors: those of the place where it is stored.
  virtual Result<void> append(std::string_view data) = 0;
};

/// Knows which of the next bytes the state machine holds, and copies them one block at a time. A
/// block counts when it has arrived as a whole, so what is in the snapshot is always either from
/// the leader or has the digest that the leader's bytes name. Of one thread at a time.
class SnapshotFiller {
 public:
  using Digest = std::function<std::string(std::string_view)>;

  /// `machine` outlives it. `digest`: SHA-256, or in a simulation what stands for it.
  SnapshotFiller(StateMachine& machine, Digest digest)
      : machine_(machine), digest_(std::move(digest)) {}

  /// There is no snapshot, or another one. Frees what the state machine has given.
  void reset();
  /// Whether the next bytes may be here. Asks the state machine when it is time.
  bool wants(const ArrivingSnapshot& arriving);
  /// After wants(): copies the rest of one block, and returns its bytes. 0: it is not here after
  /// all, and the leader has to send it. Errors: those of append().
  Result<std::uint64_t> copy(ArrivingSnapshot& arriving);

 private:
  void ask(const ArrivingSnapshot& arriving);
  bool find(const ArrivingSnapshot& arriving);

  StateMachine& machine_;
  const Digest digest_;
  /// Ask the state machine once so much has arrived.
  std::optional<std::uint64_t> ask_at_ = 1;
  std::unique_ptr<HeldBlocks> blocks_;
  std::optional<HeldBlocks::Block> block_;
  /// No block that ends here or below is of use.
  std::uint64_t beyond_ = 0;
  std::string buffer_;
};

}  // namespace leasehold::replica
