// What a replica holds already of a snapshot that is on its way to it.
#pragma once

#include <leasehold/base/result.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace leasehold::replica {

/// The largest block.
inline constexpr std::size_t kHeldBlockBytesMax = std::size_t{4} << 20U;

/// Bytes of an arriving snapshot that may be here. Nothing of it is believed: the receiver copies
/// them if their SHA-256 is the one that the snapshot names, and else the leader sends them. Used
/// on the thread of StateMachine::held_blocks(), one call at a time, until the snapshot has arrived
/// or another one takes its place.
class HeldBlocks {
 public:
  struct Block {
    std::uint64_t offset = 0;  ///< in the snapshot
    std::size_t size = 0;      ///< from 1 to kHeldBlockBytesMax
    std::string sha256;        ///< of these bytes, 32 bytes; from the beginning of the snapshot
  };
  virtual ~HeldBlocks() = default;
  /// The first block that ends above `from`, in the order of their offsets. None: the leader sends
  /// everything from there on.
  virtual std::optional<Block> next(std::uint64_t from) = 0;
  /// Reads a block that next() gave. Any error: it is not here any more.
  virtual Result<void> read(const Block& block, char* to) = 0;
};

/// The answer of StateMachine::held_blocks().
struct HeldAnswer {
  /// Above what has arrived: ask again once so many bytes are here. Else this was the last
  /// question.
  std::uint64_t ask_again_at = 0;
  std::unique_ptr<HeldBlocks> blocks{};  ///< null: nothing is here
};

}  // namespace leasehold::replica
