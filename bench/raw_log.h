// The cheapest durable log there is: one file, written from its beginning to its end.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/bench/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::bench {

/// Writes records one after another and syncs them. A preallocated log starts over at its beginning
/// when it is full. Because its blocks are allocated *and written* beforehand, a sync has no
/// metadata to store. (Space that was only reserved lacks that property: its first write changes
/// the extent tree.)
class RawLog {
 public:
  enum class Growth {
    preallocated,  ///< zeroed beforehand
    appending,     ///< grows with every write, as a log without preparation does
  };
  /// Makes `path`, replacing what is there. Errors: io.
  static Result<RawLog> create(const std::string& path, std::uint64_t bytes, Growth growth);

  /// One pwrite. Errors: io, invalid_argument (larger than the file).
  Result<void> write(std::string_view record);
  /// One fdatasync: all that was written is durable. Errors: io.
  Result<void> sync();

 private:
  RawLog(Descriptor file, std::uint64_t bytes, Growth growth)
      : file_(std::move(file)), bytes_(bytes), growth_(growth) {}

  Descriptor file_;
  std::uint64_t bytes_;
  Growth growth_;
  std::uint64_t position_ = 0;
};

}  // namespace leasehold::bench
