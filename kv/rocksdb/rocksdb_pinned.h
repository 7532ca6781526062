// How a reader holds the database that it reads. Not for other rooms.
#pragma once

#include <leasehold/kv/rocksdb/rocksdb_database.h>
#include <leasehold/kv/rocksdb/rocksdb_uncounted.h>

#include <atomic>
#include <cstdint>

namespace leasehold::kv {

/// The database that is live now, which stays open as long as this lives.
///
/// A reader counts itself at the database that it found, and then looks whether that is still the
/// live one. The thread that replaces it first stores the new one, then waits until nobody is
/// counted at the old one. Both in one total order: so either the reader sees the new one and goes
/// there, or the other thread sees the reader. The old one's object stays, so counting is always
/// allowed.
class Pinned {
 public:
  explicit Pinned(const std::atomic<Database*>& live) {
    for (;;) {
      database_ = live.load();
      readers_ = &database_->readers();
      readers_->fetch_add(1);
      if (live.load() == database_) return;
      readers_->fetch_sub(1);
    }
  }
  ~Pinned() { readers_->fetch_sub(1, std::memory_order_release); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  rocksdb::DB& db() const { return database_->db(); }
  Database& database() const { return *database_; }
  const Sessions& sessions() const { return database_->sessions_; }
  const Leases& leases() const { return database_->leases_; }

 private:
  Uncounted uncounted_;
  Database* database_;
  std::atomic<std::uint32_t>* readers_;
};

}  // namespace leasehold::kv
