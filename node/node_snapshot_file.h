// A snapshot that arrives, as a file: what was stored survives a crash, and damage by a crash is
// detected.
//
//   offset       size  field (integers little-endian)
//        0          4  magic "LHSN"
//        4          1  format, 1
//        5          3  zero
//        8          8  cluster id
//       16      8 + 8  term and index of the last entry that is in the snapshot
//       32          8  its tag
//       40          8  its size
//       48          4  bytes of the membership
//       52          n  the membership, as in the log
//     52+n          4  CRC32C of all before
//   65536        size  the bytes of the snapshot
//   65536+size  4 * b  CRC32C of each of its b blocks of 256 KiB, the last may be shorter
//
// A block counts as arrived when its checksum is right. So nothing has to be synced while the
// snapshot arrives: what a power cut destroys is requested again.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/membership.h>
#include <leasehold/raft/message.h>
#include <leasehold/replica/state_machine.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::node {

/// What stands in the head.
struct SnapshotHead {
  std::uint64_t cluster_id = 0;
  raft::SnapshotId id;
  raft::Membership membership;
  std::uint64_t size = 0;  ///< above 0
  friend bool operator==(const SnapshotHead&, const SnapshotHead&) = default;
};

std::string encode_snapshot_head(const SnapshotHead& head);
/// Reads the head at the front of `bytes`. Errors: unsupported_format (with both numbers),
/// corrupted.
Result<SnapshotHead> decode_snapshot_head(std::string_view bytes);

/// One file, of one thread at a time. Each error names the file; its code is `overloaded` when the
/// disk has no space, else `io`.
class SnapshotFile {
 public:
  /// Makes the file, or replaces the one that has the name. Refuses (`overloaded`) when the disk
  /// has no room for all of it.
  static Result<std::unique_ptr<SnapshotFile>> create(const std::string& path,
                                                      const SnapshotHead& head);
  /// Opens what is there and reads it through, to see how much of it is whole. Errors: not_found;
  /// unsupported_format and corrupted: the file is useless; io.
  static Result<std::unique_ptr<SnapshotFile>> open(const std::string& path);
  ~SnapshotFile();
  SnapshotFile(const SnapshotFile&) = delete;
  SnapshotFile& operator=(const SnapshotFile&) = delete;

  const SnapshotHead& head() const { return head_; }
  /// Everything below this has arrived.
  std::uint64_t received() const { return received_; }
  bool complete() const { return received_ == head_.size; }

  /// Adds what comes next; received() + data.size() is at most the size.
  Result<void> append(std::string_view data);
  /// Makes all of it durable.
  Result<void> sync();
  /// Bytes below received().
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const;

 private:
  SnapshotFile(std::string path, int file, SnapshotHead head)
      : path_(std::move(path)), file_(file), head_(std::move(head)) {}
  Result<void> verify();
  Result<void> read_at(std::uint64_t at, char* to, std::size_t bytes) const;
  Result<void> write(std::uint64_t at, std::string_view bytes);
  Result<void> end_block();
  void start_writeback();

  std::string path_;
  int file_;
  SnapshotHead head_;
  std::uint64_t received_ = 0;
  /// Of the block that is not full yet.
  std::uint32_t block_crc_ = 0;
  /// The disk was asked to write everything below this.
  std::uint64_t writeback_ = 0;
};

/// A complete file, in the form that the state machine gets.
class StagedSnapshot final : public replica::Snapshot {
 public:
  explicit StagedSnapshot(std::unique_ptr<SnapshotFile> file) : file_(std::move(file)) {}
  raft::Index last() const override { return file_->head().id.last.index; }
  std::uint64_t size() const override { return file_->head().size; }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    return file_->read(offset, to, bytes);
  }
  const raft::SnapshotId& id() const { return file_->head().id; }

 private:
  std::unique_ptr<SnapshotFile> file_;
};

}  // namespace leasehold::node
