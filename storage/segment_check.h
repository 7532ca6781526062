// Reads the files of a log that is in use, and looks for damage.
#pragma once

#include <leasehold/base/result.h>

#include <cstdint>
#include <functional>
#include <string>

namespace leasehold::storage {

/// Checks every frame of the segments in `dir` that are full, while another thread or process
/// writes the newest one and removes old ones; the newest is written and read back too often to be
/// looked at. `step` gets the size of each segment that was read, and says whether to go on.
/// Returns how many were checked. Errors: corrupted (with the file and the byte),
/// unsupported_format, io.
Result<std::uint64_t> check_segments(const std::string& dir,
                                     const std::function<bool(std::uint64_t bytes)>& step);

}  // namespace leasehold::storage
