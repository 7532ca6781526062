// The sum of a database's records: kept with each write, and computed from what is stored. Not for
// other rooms.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/state_sum.h>

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace leasehold::kv {

/// The sum as a database's record has it, and the index of its state.
struct KeptSum {
  std::uint64_t applied = 0;
  StateSum sum;
};

/// Whether the record is of the replicated state: not what belongs to this node, and no counter.
bool is_summed(std::string_view key);

/// Takes away the share of what is stored in `db`, so damage to it stays in the sum.
rocksdb::Status take_stored(std::string_view key, rocksdb::DB& db, StateSum& sum);
Error cannot_take_stored(const rocksdb::Status& status);

/// The sum after `batch`, which puts or deletes no key twice. Reads from `db` each record that it
/// replaces. Errors: io, corrupted.
Result<StateSum> sum_after(StateSum before, const rocksdb::WriteBatch& batch, rocksdb::DB& db);
/// Adds the record of the sum.
void put_sum(const KeptSum& kept, rocksdb::WriteBatch& batch);
/// None: the record is missing, or of a version that this build does not know. Errors: corrupted,
/// io.
Result<std::optional<KeptSum>> read_sum(rocksdb::DB& db, const rocksdb::ReadOptions& options = {});

/// What a scan has read.
struct Scanned {
  StateSum sum;
  std::uint64_t records = 0;
  std::uint64_t keys = 0;      ///< of data
  std::uint64_t arriving = 0;  ///< of these; no command sees them, and the counters neither
  std::uint64_t bytes = 0;
};
/// Reads every record from the files, with their checksums. `step` gets the bytes read so far and
/// says whether to go on; when it does not, there is no result. Errors: corrupted, io.
Result<std::optional<Scanned>> scan(rocksdb::DB& db, rocksdb::ReadOptions options,
                                    const std::function<bool(std::uint64_t bytes)>& step);

}  // namespace leasehold::kv
