#include <leasehold/base/assert.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/kv/rocksdb/rocksdb_slots.h>
#include <leasehold/kv/rocksdb/rocksdb_sum.h>

#include <memory>

namespace leasehold::kv {
namespace {

std::string_view view(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

/// Moves a sum over the records of a batch.
class Mover final : public rocksdb::WriteBatch::Handler {
 public:
  Mover(StateSum before, rocksdb::DB& db) : sum_(before), db_(db) {}

  rocksdb::Status PutCF(std::uint32_t /*family*/, const rocksdb::Slice& key,
                        const rocksdb::Slice& value) override {
    if (!is_summed(view(key))) return rocksdb::Status::OK();
    sum_ += record_sum(view(key), view(value));
    return take_stored(view(key), db_, sum_);
  }
  rocksdb::Status DeleteCF(std::uint32_t /*family*/, const rocksdb::Slice& key) override {
    return is_summed(view(key)) ? take_stored(view(key), db_, sum_) : rocksdb::Status::OK();
  }
  const StateSum& sum() const { return sum_; }

 private:
  StateSum sum_;
  rocksdb::DB& db_;
};

}  // namespace

bool is_summed(std::string_view key) {
  return key != kIdentityKey && key != kCountersKey && key != kSumKey && key != kDistrustKey;
}

rocksdb::Status take_stored(std::string_view key, rocksdb::DB& db, StateSum& sum) {
  rocksdb::PinnableSlice old;
  const rocksdb::Status found =
      db.Get(rocksdb::ReadOptions(), db.DefaultColumnFamily(), {key.data(), key.size()}, &old);
  if (found.ok()) sum -= record_sum(key, view(old));
  return found.IsNotFound() ? rocksdb::Status::OK() : found;
}

Error cannot_take_stored(const rocksdb::Status& status) {
  return status_error("cannot read what a write replaces", status);
}

Result<StateSum> sum_after(StateSum before, const rocksdb::WriteBatch& batch, rocksdb::DB& db) {
  Mover mover(before, db);
  const rocksdb::Status status = batch.Iterate(&mover);
  if (!status.ok()) return cannot_take_stored(status);
  return mover.sum();
}

void put_sum(const KeptSum& kept, rocksdb::WriteBatch& batch) {
  const std::string record =
      encode_record({kSumVersion, kept.applied, kept.sum.low, kept.sum.high});
  LEASEHOLD_ASSERT(batch.Put(std::string(kSumKey), record).ok());
}

Result<std::optional<KeptSum>> read_sum(rocksdb::DB& db, const rocksdb::ReadOptions& options) {
  std::string bytes;
  const rocksdb::Status status = db.Get(options, std::string(kSumKey), &bytes);
  if (status.IsNotFound()) return std::optional<KeptSum>();
  if (!status.ok()) return status_error("cannot read the sum of the records", status);
  const auto found = decode_whole_record("sum", bytes, 4);
  // Another version's: it is computed again.
  if (!found && found.error().code == ErrorCode::unsupported_format) {
    return std::optional<KeptSum>();
  }
  if (!found) return found.error();
  const Record& n = found.value();
  if (n[0] != kSumVersion) return std::optional<KeptSum>();
  return std::optional<KeptSum>(KeptSum{n[1], {n[2], n[3]}});
}

Result<std::optional<Scanned>> scan(rocksdb::DB& db, rocksdb::ReadOptions options,
                                    const std::function<bool(std::uint64_t bytes)>& step) {
  options.fill_cache = false;
  options.verify_checksums = true;
  options.readahead_size = std::size_t{256} << 10U;
  const std::unique_ptr<rocksdb::Iterator> at(db.NewIterator(options));
  Scanned out;
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    const std::string_view key = view(at->key());
    ++out.records;
    out.bytes += key.size() + at->value().size();
    out.keys += key.starts_with(kDataSpace) ? 1 : 0;
    if (key.starts_with(kSlotSpace)) {
      const auto arriving = arriving_keys(view(at->value()));
      if (!arriving) return arriving.error();
      out.arriving += arriving.value();
    }
    if (is_summed(key)) out.sum += record_sum(key, view(at->value()));
    if (!step(out.bytes)) return std::optional<Scanned>();
  }
  if (!at->status().ok()) return status_error("cannot read a record", at->status());
  return std::optional<Scanned>(out);
}

}  // namespace leasehold::kv
