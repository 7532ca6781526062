// RocksDB's write-ahead files, checked before RocksDB reads them.
#pragma once

#include <leasehold/base/result.h>

#include <cstdint>
#include <optional>
#include <string>

namespace leasehold::storage {

struct WalFile {
  std::uint64_t number = 0;
  std::uint64_t size = 0;
};

/// The write-ahead file with the highest number in `dir`; none if there is none. Errors: io.
Result<std::optional<WalFile>> newest_wal(const std::string& dir);

/// What the folder's mark says about the write-ahead files (see folder.h).
struct WalExpectation {
  std::uint64_t number = 0;
  std::optional<std::uint64_t> closed_size;
};

/// Checks every byte of every write-ahead file in `dir`, and that the expected one is there.
///
/// A write that a crash cut off leaves a torn record at the end of the newest file; it was never
/// reported as durable, and is cut away here. Damage anywhere else, or a damaged record that only
/// looks torn, is refused. RocksDB by itself, in every recovery mode, takes some damage for the end
/// of the log and opens with less than was acknowledged. So it is told to expect perfect files, and
/// this function sees to it.
///
/// After a clean close nothing may be torn and the newest file has its recorded size.
///
/// Errors: corrupted (names the file, the offset and what to do), io.
Result<void> check_wals(const std::string& dir, const WalExpectation& expected);

}  // namespace leasehold::storage
