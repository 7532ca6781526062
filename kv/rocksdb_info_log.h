// RocksDB's own messages. Not for other rooms.
#pragma once

#include <rocksdb/env.h>

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

namespace leasehold::kv {

/// Warnings and errors, in the file `LOG` of the database's folder, as RocksDB's users know it.
/// When it has kInfoLogBytes, it becomes `LOG.old` and a new one begins.
///
/// A line that cannot be written is dropped. RocksDB's own logger asserts instead, in a build with
/// assertions as Debian's is: a full disk would end the node, which can serve reads on it.
///
/// Any thread may log.
class InfoLog final : public rocksdb::Logger {
 public:
  static constexpr std::size_t kInfoLogBytes = std::size_t{1} << 20U;

  /// The folder may come later. Nothing is opened before there is a line. `env` tells the time, and
  /// outlives it.
  InfoLog(std::string folder, rocksdb::Env* env);

  using rocksdb::Logger::Logv;
  void Logv(const char* format, std::va_list arguments) override;
  /// The list of all options at each start, which is in the file OPTIONS too: left out.
  void LogHeader(const char* /*format*/, std::va_list /*arguments*/) override {}

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void write(const std::string& line);

  rocksdb::Env* const env_;
  const std::string path_;
  std::mutex mutex_;
  std::unique_ptr<std::FILE, Close> file_;  ///< guarded by mutex_
};

}  // namespace leasehold::kv
