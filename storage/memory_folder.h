// A folder of a log in memory: for tests, for embedding, and for replicas whose loss costs nothing.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/storage/disk.h>

#include <cstdint>
#include <memory>

namespace leasehold::storage {

/// Keeps files as long as it exists. A node whose folder is gone is another node: its next folder
/// has another uuid, under which it neither votes nor counts until it was removed and added again.
/// So what it had promised cannot be broken; but the group loses a member with each such end, and
/// all data with the last majority.
class MemoryFolder {
 public:
  /// With more than `bytes_max` in it, it is full, as a disk can be. SegmentLogOptions says what a
  /// log takes: two segments ahead of what it holds, and the free space that it leaves.
  explicit MemoryFolder(std::uint64_t bytes_max = std::uint64_t{1} << 30U);
  ~MemoryFolder();
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  /// For NodeOptions::log_disk. The result may outlive this. Any thread. Errors: in_use (an earlier
  /// result still exists).
  Result<std::unique_ptr<Disk>> open();
  std::uint64_t bytes() const;

 private:
  struct Files;
  class File;
  class Open;
  std::shared_ptr<Files> files_;
};

}  // namespace leasehold::storage
