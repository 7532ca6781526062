// Commands are evaluated over what the earlier ones of the same apply() have changed, and written
// with their sessions and leases in one batch. A full disk makes apply() wait; a failed disk ends
// the store.
#include <leasehold/base/assert.h>
#include <leasehold/kv/rocksdb/rocksdb_leases.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/kv/rocksdb/rocksdb_rows.h>
#include <leasehold/kv/rocksdb/rocksdb_sessions.h>
#include <leasehold/kv/rocksdb/rocksdb_slots.h>
#include <leasehold/kv/rocksdb/rocksdb_store_impl.h>
#include <leasehold/kv/rocksdb/rocksdb_uncounted.h>
#include <leasehold/kv/rocksdb/rocksdb_users.h>

#include <rocksdb/write_batch.h>

#include <algorithm>
#include <utility>

namespace leasehold::kv {
namespace {

/// Values and sessions that one apply() collects before it writes them, give or take one command.
constexpr std::size_t kChangedBytesMax = std::size_t{16} << 20U;
/// How often a wait for space checks whether it has to end.
constexpr std::chrono::milliseconds kWaitStep{20};
/// Of revisions and ids: two such numbers together are still one.
constexpr std::uint64_t kNumbersEnd = std::uint64_t{1} << 62U;

/// What replicas compare: the records, and the counters.
StateSum compared_sum(const Database& database, const Counters& counters) {
  StateSum sum = database.sum_;
  sum += record_sum(kCountersKey, encode_record({counters.revision, counters.keys}));
  return sum;
}

}  // namespace

// The evaluation's view: this apply()'s own changes, then the database.

Result<std::optional<Value>> RocksdbStore::Impl::load(std::string_view key) {
  Touched& touched = touch(key);
  if (touched.changed) return touched.value;
  const std::string whole_key = data_key(key);
  if (std::string record; live().records_.find(key, record)) {
    touched.stored = true;
    touched.share = record_sum(whole_key, record);
    auto value = take_value(std::move(record), Load::whole);
    if (!value) return fail(value.error());
    return std::optional<Value>(std::move(value).value());
  }
  rocksdb::PinnableSlice bytes;
  auto value = look_up(whole_key, live().db(), rocksdb::ReadOptions(), Load::whole, bytes);
  if (!value) return value;
  touched.stored = value.value().has_value();
  touched.share = touched.stored ? record_sum(whole_key, {bytes.data(), bytes.size()}) : StateSum();
  return value;
}

void RocksdbStore::Impl::put(std::string_view key, Value value) {
  changed_bytes_ += value.bytes.size();
  Touched& touched = touch(key);
  touched.changed = true;
  touched.value = std::move(value);
}

void RocksdbStore::Impl::erase(std::string_view key) {
  Touched& touched = touch(key);
  touched.changed = true;
  touched.value.reset();
}

RocksdbStore::Impl::Touched& RocksdbStore::Impl::touch(std::string_view key) {
  if (last_touched_ == touched_.end() || last_touched_->first != key) {
    last_touched_ = touched_.lower_bound(key);
    if (last_touched_ == touched_.end() || last_touched_->first != key) {
      last_touched_ = touched_.emplace_hint(last_touched_, key, Touched());
    }
  }
  return last_touched_->second;
}

void RocksdbStore::Impl::forget_touched() {
  touched_.clear();
  last_touched_ = touched_.end();
  changed_bytes_ = 0;
}

Result<grant::FencingToken> RocksdbStore::Impl::fence(std::string_view key) {
  const auto changed = fences_.find(key);
  if (changed != fences_.end()) return changed->second;
  return read_fence(live().db(), key);
}

void RocksdbStore::Impl::put_fence(std::string_view key, grant::FencingToken token, bool first) {
  if (first) live().fences_.fetch_add(1, std::memory_order_release);
  fences_.insert_or_assign(std::string(key), token);
}

std::vector<Bytes> RocksdbStore::Impl::apply(const std::vector<replica::Command>& commands,
                                             raft::Index last) {
  if (successor_) return apply_until_successor(commands, last);
  const Uncounted uncounted;
  Database& database = live();
  raft::Index previous(database.applied_.load(std::memory_order_relaxed));
  LEASEHOLD_ASSERT(last > previous);
  std::vector<Bytes> replies;
  replies.reserve(commands.size());
  std::optional<Error> failed = failure();
  Counters counters{database.revision_.load(std::memory_order_relaxed),
                    database.keys_.load(std::memory_order_relaxed)};
  for (const replica::Command& command : commands) {
    LEASEHOLD_ASSERT(command.id.index > previous);
    previous = command.id.index;
    if (failed) break;
    auto reply = evaluate(command, *this, database.sessions_, counters);
    database.leases_.end_step();
    if (reply) {
      replies.push_back(std::move(reply).value());
    } else {
      failed = fail(reply.error());
    }
    // A short command may write a long value (SetRange): what waits in memory is bounded.
    const std::size_t waiting = changed_bytes_ + session_bytes(database.sessions_) +
                                database.leases_.unsaved_bytes() + users_.changed_bytes();
    const bool compared = std::exchange(compare_, false);
    if (!failed && (waiting > kChangedBytesMax || compared)) {
      if (auto written = write_changes(counters, command.id.index); !written) {
        failed = fail(written.error());
      }
    }
    if (!failed && compared) comparison_.take(command.id.index, compared_sum(database, counters));
  }
  LEASEHOLD_ASSERT(previous <= last);
  if (!failed) {
    if (auto written = write_changes(counters, last); !written) failed = fail(written.error());
  }
  if (failed) {
    forget_touched();
    events_.unstage();
    // It is unknown which writes of this call were made, so none of its results may be returned.
    replies.assign(commands.size(),
                   encode_reply(ErrorReply{ErrorKind::store_failed, failed->message}));
    return replies;
  }
  database.revision_.store(counters.revision, std::memory_order_release);
  database.keys_.store(counters.keys, std::memory_order_release);
  database.applied_.store(last.value(), std::memory_order_release);
  // They are the results of a state that is not the group's.
  if (const auto refused = refusal()) {
    replies.assign(commands.size(),
                   encode_reply(ErrorReply{ErrorKind::store_failed, refused->message}));
  }
  return replies;
}

Result<void> RocksdbStore::Impl::leave_gap(const NumberGap& gap) {
  if (auto failed = failure()) return *failed;
  Database& database = live();
  const Counters before{database.revision_.load(), database.keys_.load()};
  const std::uint64_t newest = std::max({before.revision, database.leases_.table().newest().value(),
                                         database.sessions_.table().newest().value()});
  if (gap.last.value() <= database.applied_.load() || newest >= kNumbersEnd ||
      gap.revisions >= kNumbersEnd || gap.ids >= kNumbersEnd) {
    return Error{ErrorCode::invalid_argument, "the store has no numbers behind such a gap"};
  }
  const Counters counters{before.revision + gap.revisions, before.keys};
  database.sessions_.skip_ids(gap.ids);
  database.leases_.skip_ids(gap.ids);
  events_.skip_to(counters.revision);
  if (auto written = write_changes(counters, gap.last); !written) return fail(written.error());
  database.revision_.store(counters.revision, std::memory_order_release);
  database.applied_.store(gap.last.value(), std::memory_order_release);
  return {};
}

// Most of what is written: the sum moves here, without another look at the batch.
Result<void> RocksdbStore::Impl::put_touched(rocksdb::WriteBatch& batch, StateSum& sum) {
  std::string record;
  for (const auto& [key, touched] : touched_) {
    if (!touched.changed) continue;
    const std::string whole_key = data_key(key);
    if (touched.share) {
      sum -= *touched.share;
    } else if (const auto status = take_stored(whole_key, live().db(), sum); !status.ok()) {
      return cannot_take_stored(status);
    }
    if (!touched.value) {
      LEASEHOLD_ASSERT(batch.Delete(whole_key).ok());
      continue;
    }
    record = encode_value_head(*touched.value);
    record += touched.value->bytes.view();
    sum += record_sum(whole_key, record);
    LEASEHOLD_ASSERT(batch.Put(whole_key, record).ok());
  }
  return {};
}

void RocksdbStore::Impl::take_out_of_cache(CachedRecords::Write& records) {
  for (auto& [key, touched] : touched_) {
    if (touched.changed) touched.cached = records.take_out(key);
  }
}

/// What readers look for, and what the next write of the key replaces. A key that is written for
/// the first time stays out: a load of many keys does not push out what is read.
void RocksdbStore::Impl::put_in_cache(CachedRecords::Write& records) {
  std::string record;
  for (const auto& [key, touched] : touched_) {
    if (!(touched.cached || touched.stored) || !touched.value) continue;
    record = encode_value_head(*touched.value);
    record += touched.value->bytes.view();
    records.put_in(key, record, touched.cached);
  }
}

Result<void> RocksdbStore::Impl::write_changes(const Counters& counters, raft::Index last) {
  rocksdb::WriteBatch batch;
  Database& database = live();
  put_sessions(database.sessions_, batch);
  put_leases(database.leases_, batch);
  put_users(users_, batch);
  put_slots(slots_, batch);
  for (const auto& [key, token] : fences_) kv::put_fence(key, token, batch);
  auto sum = sum_after(database.sum_, batch, database.db());
  if (!sum) return sum.error();
  if (auto put = put_touched(batch, sum.value()); !put) return put.error();
  put_sum({last.value(), sum.value()}, batch);
  // A batch in memory without limits takes every record.
  LEASEHOLD_ASSERT(batch
                       .Put(std::string(kCountersKey),
                            encode_record({last.value(), counters.revision, counters.keys}))
                       .ok());
  slots_.about_to_write();
  {
    CachedRecords::Write records(database.records_);
    take_out_of_cache(records);
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    const rocksdb::Status status =
        with_space(database, [&] { return database.db().Write(options, &batch); });
    if (!status.ok()) return status_error("a write failed", status);
    put_in_cache(records);
  }
  database.sum_ = sum.value();
  forget_touched();
  fences_.clear();
  database.sessions_.saved();
  database.leases_.saved();
  users_.saved();
  slots_.saved();
  events_.publish();
  return {};
}

// ---- A full disk, and one that fails ----

void RocksdbStore::Impl::wait_for_space(Database& database) {
  for (auto left = options_.full_retry; left > left.zero() && !interrupted_.load();
       left -= kWaitStep) {
    const auto step = std::chrono::microseconds(std::min(left, kWaitStep));
    options_.env->SleepForMicroseconds(static_cast<int>(step.count()));
  }
  const std::lock_guard lock(full_mutex_);
  if (database.full()) database.resume();
}

void RocksdbStore::Impl::report_full(bool waits) {
  const std::lock_guard lock(full_mutex_);
  waiting_ += waits ? 1 : -1;
  const bool changed = waiting_ == (waits ? 1 : 0);
  if (changed && options_.on_full) options_.on_full(waits);
}

/// Remembers the first failure and reports it to the owner; returns the error to answer.
Error RocksdbStore::Impl::fail(const Error& error) const {
  Error named = in_folder(options_.dir, error);
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_) return *failure_;
    failure_ = named;
    failed_.store(true, std::memory_order_release);
  }
  if (options_.on_failure) options_.on_failure(named);
  return named;
}

std::optional<Error> RocksdbStore::Impl::failure() const {
  if (!failed_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

}  // namespace leasehold::kv
