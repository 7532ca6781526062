// The files of one folder, as the log needs them. This is the seam at which a test puts a disk that
// loses what was not synced.
#pragma once

#include <leasehold/base/result.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::storage {

/// How create() says that there is no space: full, nothing was done, and it may be tried again.
inline constexpr ErrorCode kNoSpace = ErrorCode::overloaded;
/// The code that a user of the log gets: `overloaded` would mean "try again", and a log that has
/// failed must not be tried again.
constexpr ErrorCode final_code(ErrorCode code) {
  return code == kNoSpace ? ErrorCode::io : code;
}

/// A file of fixed size. read() from any thread; write() and sync() from one at a time.
class DiskFile {
 public:
  virtual ~DiskFile() = default;
  virtual std::uint64_t size() const = 0;
  /// All of `bytes`, or an error. Errors: io.
  virtual Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const = 0;
  /// Writes all of `bytes`; durable after the next sync(). Never past size(). Errors: io.
  virtual Result<void> write(std::uint64_t offset, std::string_view bytes) = 0;
  /// Errors: io. After an error the content of the disk is unknown, and another try proves nothing.
  virtual Result<void> sync() = 0;
};

/// A folder that this process alone uses. One thread at a time.
class Disk {
 public:
  virtual ~Disk() = default;
  /// For messages.
  virtual const std::string& path() const = 0;
  /// The names of everything in it, sorted. Errors: io.
  virtual Result<std::vector<std::string>> list() const = 0;
  /// The first `bytes_max` bytes of a file; none if there is none. Errors: io.
  virtual Result<std::optional<std::string>> load(const std::string& name,
                                                  std::size_t bytes_max) const = 0;
  virtual Result<std::shared_ptr<DiskFile>> open(const std::string& name) const = 0;
  /// Makes a file that holds `head` and then zeroes, `size` bytes in all, or replaces the one that
  /// has the name. Made under kNewSuffix and renamed: durable on return, and never seen half made.
  /// The zeroes are written, so that overwriting them later changes nothing but data. Errors:
  /// kNoSpace (nothing of it stays), io.
  virtual Result<std::shared_ptr<DiskFile>> create(const std::string& name, std::string_view head,
                                                   std::uint64_t size) = 0;
  /// Removes a file; it stays readable where it is open. Durable at the latest after the next
  /// create(). A success when there is none. Errors: io.
  virtual Result<void> remove(const std::string& name) = 0;
  /// How many bytes may still be stored, by this process and the others of its user. Errors: io.
  virtual Result<std::uint64_t> free_bytes() const = 0;
  /// Where the lock lies that keeps other processes out: see lock_place.h. 0: no other process can
  /// compare its own with it.
  virtual std::uint64_t place() const { return 0; }
};

/// Files with this suffix are what a crash left of create(); the next create() replaces them.
inline constexpr std::string_view kNewSuffix = ".new";

}  // namespace leasehold::storage
