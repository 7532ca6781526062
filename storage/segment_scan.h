// What stands behind the last good frame of a segment: nothing, a torn write, or damage.
#pragma once

#include <leasehold/storage/segment_record.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::storage {

bool all_zero(std::string_view bytes);

enum class TailKind {
  clean,    ///< nothing was ever written there
  torn,     ///< a write whose sync never returned
  damaged,  ///< something that had been durable is not what was written
};

struct Tail {
  TailKind kind = TailKind::clean;
  std::string why;  ///< of damage
};

/// Judges the bytes of a segment from `at` on, where no good frame begins; the frame that would
/// stand there has the number `sequence`. Rests on three facts: all bytes were zeroes once; a
/// sector is written as a whole or not at all; a frame is written when all before it are durable.
Tail judge_tail(std::string_view segment, std::uint64_t salt, std::uint64_t at,
                std::uint64_t sequence);

}  // namespace leasehold::storage
