// RocksDB without its counts. Not for other rooms.
#pragma once

#include <rocksdb/perf_level.h>

namespace leasehold::kv {

/// While it lives, RocksDB does not count what this thread makes it do. By default it does, in
/// memory of the thread, for each comparison of two keys: that is a fifteenth of the work of a
/// small write. A thread of an embedder gets its own level back.
class Uncounted {
 public:
  Uncounted() : before_(rocksdb::GetPerfLevel()) {
    rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
  }
  ~Uncounted() { rocksdb::SetPerfLevel(before_); }
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;

 private:
  const rocksdb::PerfLevel before_;
};

}  // namespace leasehold::kv
