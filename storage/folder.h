// The log's folder beside its database: who may use it, whose it is, and which write-ahead file has
// to be there.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::storage {

/// The content of the file `LEASEHOLD` in the folder. It is what makes a folder a log, and it knows
/// what the database alone cannot: which of the database's write-ahead files is the newest, without
/// which a missing file would look like a log that ends earlier.
struct FolderMark {
  std::uint64_t cluster_id = 0;
  raft::NodeId id;
  raft::Uuid uuid;
  raft::Incarnation incarnation;  ///< of the newest open
  /// A write-ahead file of this number or a higher one has to exist. 0: the database may not have
  /// been made yet.
  std::uint64_t wal_number = 0;
  /// Set by a clean close: the size of that file, which is then the newest.
  std::optional<std::uint64_t> wal_size;
  friend bool operator==(const FolderMark&, const FolderMark&) = default;
};

std::string encode_mark(const FolderMark& mark);
/// Accepts exactly what encode_mark makes. Errors: unsupported_format (with both numbers),
/// corrupted.
Result<FolderMark> decode_mark(std::string_view bytes);

/// A folder that this process alone uses. One thread at a time.
class Folder {
 public:
  /// Makes the folder, with its parents, unless it exists, and locks it. Errors: in_use, io.
  static Result<Folder> open(const std::string& path);
  Folder(Folder&& other) noexcept;
  Folder& operator=(Folder&&) = delete;
  ~Folder();

  const std::string& path() const { return path_; }
  /// Whether there is nothing in it but what read_mark() and write_mark() leave behind.
  Result<bool> blank() const;
  /// None: there is no mark. Errors: io, and those of decode_mark.
  Result<std::optional<FolderMark>> read_mark() const;
  /// Replaces the mark; durable on return, and never seen half written.
  Result<void> write_mark(const FolderMark& mark) const;

 private:
  Folder(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_ = -1;  ///< of the folder, holding the lock
};

}  // namespace leasehold::storage
