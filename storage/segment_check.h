// Reads the files of a log that is in use, and looks for damage.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/storage/disk.h>

#include <cstdint>
#include <functional>

namespace leasehold::storage {

/// Checks every frame of the full segments, while another thread writes the newest one and removes
/// old ones (view_posix_disk()); the newest is not looked at. `step` gets the size of each segment
/// that was read, and says whether to go on. Returns how many were checked. Errors: corrupted (with
/// the file and the byte), io.
Result<std::uint64_t> check_segments(const Disk& disk,
                                     const std::function<bool(std::uint64_t bytes)>& step);

}  // namespace leasehold::storage
