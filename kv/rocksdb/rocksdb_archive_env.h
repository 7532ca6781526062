// The files of an archive as RocksDB reads them: its database is looked into without being
// unpacked. Not for other rooms.
#pragma once

#include <leasehold/kv/rocksdb/rocksdb_archive.h>
#include <leasehold/replica/state_machine.h>

#include <rocksdb/env.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::kv {

/// The only folder of an ArchiveEnv.
inline constexpr const char* kArchiveFolder = "/archive";

/// Nothing can be written, and nothing else is found. What is read is checked block by block.
class ArchiveEnv final : public rocksdb::EnvWrapper {
 public:
  /// `archive` outlives it; `head` is its head.
  ArchiveEnv(const replica::Snapshot& archive, ArchiveHead head);

  rocksdb::Status FileExists(const std::string& name) override;
  rocksdb::Status GetChildren(const std::string& folder, std::vector<std::string>* names) override;
  rocksdb::Status GetFileSize(const std::string& name, std::uint64_t* size) override;
  rocksdb::Status NewSequentialFile(const std::string& name,
                                    std::unique_ptr<rocksdb::SequentialFile>* result,
                                    const rocksdb::EnvOptions& options) override;
  rocksdb::Status NewRandomAccessFile(const std::string& name,
                                      std::unique_ptr<rocksdb::RandomAccessFile>* result,
                                      const rocksdb::EnvOptions& options) override;

  // What would reach the machine's files.
  rocksdb::Status NewWritableFile(const std::string& name,
                                  std::unique_ptr<rocksdb::WritableFile>* result,
                                  const rocksdb::EnvOptions& options) override;
  rocksdb::Status CreateDir(const std::string& name) override;
  rocksdb::Status CreateDirIfMissing(const std::string& name) override;
  rocksdb::Status DeleteFile(const std::string& name) override;
  rocksdb::Status RenameFile(const std::string& from, const std::string& to) override;

 private:
  class RandomFile;
  class SequentialFile;
  std::optional<std::size_t> find(const std::string& name) const;
  /// Up to `bytes` bytes of a file, as many as it has there. Any thread.
  rocksdb::Status read(std::size_t file, std::uint64_t offset, std::size_t bytes,
                       rocksdb::Slice* result, char* scratch);
  rocksdb::Status load(std::size_t file, std::uint64_t block);

  const replica::Snapshot& archive_;
  const ArchiveHead head_;
  /// Where the blocks of each file begin in the archive.
  std::vector<std::uint64_t> starts_;

  /// The archive is read by one call at a time.
  std::mutex mutex_;
  std::string block_;  ///< the newest one, without its checksum; empty: none
  std::size_t block_file_ = 0;
  std::uint64_t block_number_ = 0;
};

}  // namespace leasehold::kv
