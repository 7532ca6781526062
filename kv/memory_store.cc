// The keys are spread over shards, each a hash map behind a lock of its own. Only apply() writes,
// so it evaluates without any lock; it locks the shards that one command changes, all of them at
// once, only while it installs the changes. So a command is seen as a whole or not at all.
#include <leasehold/base/assert.h>
#include <leasehold/base/coding.h>
#include <leasehold/kv/evaluate.h>
#include <leasehold/kv/format_errors.h>
#include <leasehold/kv/lease_record.h>
#include <leasehold/kv/memory_store.h>
#include <leasehold/kv/memory_tables.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace leasehold::kv {
namespace {

/// All of them are locked at once for a scan; the thread sanitizer follows fewer than 64 locks.
constexpr std::size_t kShards = 32;
constexpr std::string_view kMemoryMagic("LHMEMS\r\n", 8);
constexpr std::uint8_t kMemoryFormat = 5;
/// Before slots moved; still written when none has.
constexpr std::uint8_t kMemoryFormatWithoutSlots = 4;
/// Before there were users; still written when there are neither.
constexpr std::uint8_t kMemoryFormatWithoutUsers = 3;
/// Before there were leases.
constexpr std::uint8_t kMemoryFormatWithoutLeases = 2;

struct Shard {
  mutable std::mutex mutex;
  std::unordered_map<std::string, Value> values;

  /// The caller holds the lock, or is the only writer.
  const Value* find(const std::string& key) const {
    const auto at = values.find(key);
    return at == values.end() ? nullptr : &at->second;
  }
};

std::size_t shard_of(std::string_view key) {
  return std::hash<std::string_view>{}(key) % kShards;
}

/// One write that waits for the end of its command; without a value it erases.
struct Change {
  std::size_t shard = 0;
  std::string key;
  std::optional<Value> value;
};

/// Of a snapshot: the oldest one that has what there is.
std::uint8_t format_for(const Users& users, const Slots& slots) {
  if (!slots.all().empty()) return kMemoryFormat;
  return users.size() > 0 ? kMemoryFormatWithoutSlots : kMemoryFormatWithoutUsers;
}

}  // namespace

class MemoryStore::Impl final : public Backend {
 public:
  Impl(EventHistory::Limits limits, std::uint64_t ids_above)
      : events_(limits), ids_above_(ids_above) {}

  Result<std::optional<Value>> load(std::string_view key) override {
    const Value* value = shards_[shard_of(key)].find(std::string(key));
    if (value == nullptr) return std::optional<Value>();
    return std::optional<Value>(*value);
  }

  void put(std::string_view key, Value value) override {
    changes_.push_back(Change{shard_of(key), std::string(key), std::move(value)});
  }

  void erase(std::string_view key) override {
    changes_.push_back(Change{shard_of(key), std::string(key), std::nullopt});
  }

  Result<grant::FencingToken> fence(std::string_view key) override {
    const auto at = fences_.find(key);
    return at == fences_.end() ? grant::FencingToken(0) : at->second;
  }
  void put_fence(std::string_view key, grant::FencingToken token, bool) override {
    fences_.insert_or_assign(std::string(key), token);
    fence_count_.store(fences_.size(), std::memory_order_release);
  }
  std::size_t fence_count() override { return fences_.size(); }
  grant::LeaseTable& leases() override { return leases_.begin_step(); }
  Users& users() override { return users_; }
  Slots* slots() override { return &slots_; }
  std::uint64_t ids_above() override { return ids_above_; }
  void skip_to(std::uint64_t revision) override { events_.skip_to(revision); }
  void tell(const Revision& revision) override { events_.stage(revision); }

  Bytes run(const replica::Command& command) {
    Counters counters{revision_.load(std::memory_order_relaxed),
                      keys_.load(std::memory_order_relaxed)};
    auto reply = evaluate(command, *this, sessions_, counters);
    LEASEHOLD_ASSERT(reply.ok());  // memory does not fail
    slots_.about_to_write();
    install(counters);
    slots_.saved();
    // After the keys: a reader that sees the end of a lease also sees that its keys are gone.
    leases_.end_step();
    events_.publish();
    return std::move(reply).value();
  }

  /// See take_snapshot(). The caller holds applying_.
  std::string encode() const;
  Result<void> install(std::string_view bytes, raft::Index last);

  const Shard& shard(std::string_view key) const { return shards_[shard_of(key)]; }

  std::atomic<std::uint64_t> revision_{0};
  std::atomic<std::uint64_t> keys_{0};
  std::atomic<std::uint64_t> fence_count_{0};
  std::atomic<std::uint64_t> applied_{0};
  Sessions sessions_;
  Leases leases_;
  EventHistory events_;
  const std::uint64_t ids_above_;
  Users users_;
  Slots slots_;
  /// Held by a thread while values and numbers must not change.
  std::mutex applying_;

  Result<std::vector<std::optional<Value>>> get_all(const std::vector<std::string_view>& keys,
                                                    Load load) const {
    std::bitset<kShards> touched;
    for (const std::string_view key : keys) touched.set(shard_of(key));
    std::vector<std::optional<Value>> out;
    out.reserve(keys.size());
    std::size_t bytes = 0;
    const Locked locked(*this, touched);
    for (const std::string_view key : keys) {
      const Value* value = shard(key).find(std::string(key));
      out.push_back(value == nullptr ? std::nullopt : std::optional<Value>(*value));
      if (value == nullptr) continue;
      bytes += value->bytes.size();
      if (bytes > bytes_max(load)) return values_too_large(bytes_max(load));
      if (load == Load::whole) continue;
      out.back()->left_out = value->bytes.size();
      out.back()->bytes = Bytes();
    }
    return out;
  }

  Result<std::vector<std::string>> keys_after(std::optional<std::string_view> after,
                                              std::size_t count) const {
    const Locked locked(*this, std::bitset<kShards>().set());
    std::vector<std::string_view> found;
    for (const Shard& shard : shards_) {
      for (const auto& [key, value] : shard.values) {
        if (!after || *after < key) found.push_back(key);
      }
    }
    const std::size_t kept = std::min(count, found.size());
    const auto end = found.begin() + static_cast<std::ptrdiff_t>(kept);
    std::partial_sort(found.begin(), end, found.end());
    return std::vector<std::string>(found.begin(), end);
  }

  Rows rows(std::string_view prefix, std::optional<std::string_view> after, std::size_t count,
            Load load) const {
    Rows out;
    {
      const Locked locked(*this, std::bitset<kShards>().set());
      out.revision = revision_.load(std::memory_order_acquire);
      for (const Shard& shard : shards_) {
        for (const auto& [key, value] : shard.values) {
          if (key.compare(0, prefix.size(), prefix) != 0 || (after && key <= *after)) continue;
          out.rows.push_back({key, value});
        }
      }
    }
    const auto by_key = [](const Row& a, const Row& b) { return a.key < b.key; };
    std::sort(out.rows.begin(), out.rows.end(), by_key);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < out.rows.size(); ++i) {
      if (i == count || bytes > kRowsBytesMax) {
        out.rows.resize(i);
        out.more = true;
        break;
      }
      if (load == Load::revisions) out.rows[i].value.bytes = Bytes();
      bytes += out.rows[i].value.bytes.size();
    }
    return out;
  }

  /// The caller holds applying_.
  SlotFences slot_fences(const SlotSet& slots, std::optional<std::string_view> after) const {
    SlotFences out;
    auto at = after ? fences_.upper_bound(*after) : fences_.begin();
    for (; at != fences_.end() && out.fences.size() < kSlotKeysSeenMax; ++at) {
      if (slots.test(slot_of(at->first))) out.fences.emplace_back(*at);
    }
    if (at != fences_.end()) out.reached = out.fences.back().first;
    return out;
  }

 private:
  /// Holds the locks of some shards, taken in ascending order, so that two holders can never wait
  /// for each other.
  class Locked {
   public:
    Locked(const Impl& store, std::bitset<kShards> chosen) : store_(store), chosen_(chosen) {
      for (std::size_t i = 0; i < kShards; ++i) {
        if (chosen_.test(i)) store_.shards_[i].mutex.lock();
      }
    }
    ~Locked() {
      for (std::size_t i = 0; i < kShards; ++i) {
        if (chosen_.test(i)) store_.shards_[i].mutex.unlock();
      }
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

   private:
    const Impl& store_;
    std::bitset<kShards> chosen_;
  };

  void install(const Counters& counters) {
    std::bitset<kShards> touched;
    for (const Change& change : changes_) touched.set(change.shard);
    const Locked locked(*this, touched);
    for (Change& change : changes_) {
      auto& values = shards_[change.shard].values;
      if (change.value) {
        values.insert_or_assign(std::move(change.key), std::move(*change.value));
      } else {
        values.erase(change.key);
      }
    }
    // Inside the locks: a reader that sees the effect of the command also sees its revision.
    revision_.store(counters.revision, std::memory_order_release);
    keys_.store(counters.keys, std::memory_order_release);
    changes_.clear();
  }

  std::array<Shard, kShards> shards_;
  std::vector<Change> changes_;
  /// Used by apply()'s thread, and by a thread that holds applying_.
  std::map<std::string, grant::FencingToken, std::less<>> fences_;
};

// {magic 8}{format u8}{applied u64}{revision u64}{keys u64}, then each key, ascending:
// {key: length u32, bytes}{create u64}{mod u64}{version u64}{lease u64}{value: length u32, bytes}
// and {fences: count u32, and each {key}{token u64}, ascending}{leases: lease_record.cc}
// and from format 4 on {users: count u32, and each {name}{version u64}{created u64}{rules},
// ascending}, and in format 5 {slots: count u32, and each
// {slot u32}{phase u8}{epoch u64}{other u32}{move u64}{keys u64}, ascending}
// {the table of sessions: the rest}
std::string MemoryStore::Impl::encode() const {
  std::vector<std::pair<std::string_view, const Value*>> all;
  for (const Shard& shard : shards_) {
    for (const auto& [key, value] : shard.values) all.emplace_back(key, &value);
  }
  std::sort(all.begin(), all.end());
  std::string out(kMemoryMagic);
  BigWriter to(out);
  const std::uint8_t format = format_for(users_, slots_);
  to.u8(format);
  to.u64(applied_.load());
  to.u64(revision_.load());
  to.u64(all.size());
  for (const auto& [key, value] : all) {
    to.sized(key);
    to.u64(value->create_revision);
    to.u64(value->mod_revision);
    to.u64(value->version);
    to.u64(value->lease.value());
    to.sized(value->bytes.view());
  }
  to.u32(static_cast<std::uint32_t>(fences_.size()));
  for (const auto& [key, token] : fences_) {
    to.sized(key);
    to.u64(token.value());
  }
  put_leases(out, leases_.table());
  if (format >= kMemoryFormatWithoutSlots) put_users(out, users_);
  if (format >= kMemoryFormat) put_slots(out, slots_.all());
  out.append(sessions_.table().encode_all().view());
  return out;
}

Result<void> MemoryStore::Impl::install(std::string_view bytes, raft::Index last) {
  const Error damaged{ErrorCode::corrupted, "the snapshot of a store in memory is damaged"};
  BigReader in(bytes);
  if (in.take(kMemoryMagic.size()) != kMemoryMagic) {
    return Error{ErrorCode::corrupted, "this is no snapshot of a store in memory"};
  }
  const unsigned format = in.u8();
  const bool known = format >= kMemoryFormatWithoutLeases && format <= kMemoryFormat;
  const bool with_leases = format >= kMemoryFormatWithoutUsers;
  if (in.ok() && !known) return kv::unsupported("the snapshot has", format, kMemoryFormat);
  const std::uint64_t applied = in.u64();
  const std::uint64_t revision = in.u64();
  const std::uint64_t keys = in.u64();
  if (applied != last.value()) return damaged;
  std::array<std::unordered_map<std::string, Value>, kShards> fresh;
  std::string previous;
  for (std::uint64_t i = 0; i < keys && in.ok(); ++i) {
    std::string key(in.sized());
    if (i > 0 && key <= previous) return damaged;
    Value value;
    value.create_revision = in.u64();
    value.mod_revision = in.u64();
    value.version = in.u64();
    if (with_leases) value.lease = grant::LeaseId(in.u64());
    value.bytes = Bytes(in.sized());
    previous = key;
    fresh[shard_of(key)].emplace(std::move(key), std::move(value));
  }
  if (!in.ok()) return damaged;
  std::map<std::string, grant::FencingToken, std::less<>> fences;
  grant::LeaseTable leases;
  if (with_leases) {
    const std::uint32_t count = in.u32();
    for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
      std::string key(in.sized());
      fences.insert_or_assign(std::move(key), grant::FencingToken(in.u64()));
    }
    auto taken = take_leases(in);
    if (!taken) return damaged;
    leases = std::move(taken).value();
  }
  auto users = format >= kMemoryFormatWithoutSlots ? take_users(in) : Result<UserMap>(UserMap());
  if (!users) return damaged;
  auto slots = format >= kMemoryFormat ? take_slots(in) : Result<SlotMap>(SlotMap());
  if (!slots) return damaged;
  auto sessions = replica::SessionTable::decode_all(in.take_rest());
  if (!sessions) return damaged;
  slots_.about_to_replace(slots.value());
  const Locked locked(*this, std::bitset<kShards>().set());
  for (std::size_t i = 0; i < kShards; ++i) shards_[i].values.swap(fresh[i]);
  sessions_.replace(std::move(sessions).value());
  leases_.replace(std::move(leases));
  users_.replace(std::move(users).value());
  slots_.replace(std::move(slots).value());
  fences_ = std::move(fences);
  fence_count_.store(fences_.size(), std::memory_order_release);
  revision_.store(revision, std::memory_order_release);
  keys_.store(keys - arriving_keys(slots_.all()), std::memory_order_release);
  applied_.store(applied, std::memory_order_release);
  events_.restart(revision);
  return {};
}

Result<raft::Index> MemoryStore::make_durable() {
  return Error{ErrorCode::unsupported,
               "a store in memory is never durable: its log is kept from the beginning"};
}

Result<std::shared_ptr<const replica::Snapshot>> MemoryStore::take_snapshot() {
  const std::lock_guard lock(impl_->applying_);
  return std::shared_ptr<const replica::Snapshot>(
      std::make_shared<EncodedSnapshot>(applied_index(), impl_->encode()));
}

Result<void> MemoryStore::install_snapshot(const replica::Snapshot& snapshot) {
  std::string bytes(snapshot.size(), '\0');
  if (auto read = snapshot.read(0, bytes.data(), bytes.size()); !read) return read;
  const std::lock_guard lock(impl_->applying_);
  return impl_->install(bytes, snapshot.last());
}

MemoryStore::MemoryStore(EventHistory::Limits limits, std::uint64_t ids_above)
    : impl_(std::make_unique<Impl>(limits, ids_above)) {}
MemoryStore::~MemoryStore() = default;

raft::Index MemoryStore::durable_index() const {
  return raft::Index(0);
}

std::vector<Bytes> MemoryStore::apply(const std::vector<replica::Command>& commands,
                                      raft::Index last) {
  const std::lock_guard lock(impl_->applying_);
  raft::Index previous = applied_index();
  LEASEHOLD_ASSERT(last > previous);
  std::vector<Bytes> replies;
  replies.reserve(commands.size());
  for (const replica::Command& command : commands) {
    LEASEHOLD_ASSERT(command.id.index > previous);
    previous = command.id.index;
    replies.push_back(impl_->run(command));
  }
  LEASEHOLD_ASSERT(previous <= last);
  impl_->sessions_.saved();
  impl_->leases_.saved();
  impl_->users_.saved();
  impl_->applied_.store(last.value(), std::memory_order_release);
  return replies;
}

Result<std::optional<Value>> MemoryStore::get(std::string_view key) const {
  const Shard& shard = impl_->shard(key);
  const std::string owned(key);
  const std::lock_guard lock(shard.mutex);
  const Value* value = shard.find(owned);
  if (value == nullptr) return std::optional<Value>();
  return std::optional<Value>(*value);
}

Result<std::vector<std::optional<Value>>> MemoryStore::get_all(
    const std::vector<std::string_view>& keys, Load load) const {
  return impl_->get_all(keys, load);
}
Result<std::vector<std::string>> MemoryStore::keys_after(std::optional<std::string_view> after,
                                                         std::size_t count) const {
  return impl_->keys_after(after, count);
}

Result<Rows> MemoryStore::rows(std::string_view prefix, std::optional<std::string_view> after,
                               std::size_t count, Load load) const {
  return impl_->rows(prefix, after, count, load);
}

Result<SlotRows> MemoryStore::slot_rows(const SlotSet& slots, std::optional<std::string_view> after,
                                        Load load) const {
  Rows some = impl_->rows("", after, kSlotKeysSeenMax, load);
  SlotRows out;
  if (some.more) out.reached = some.rows.back().key;
  std::erase_if(some.rows, [&slots](const Row& row) { return !slots.test(slot_of(row.key)); });
  out.rows = std::move(some.rows);
  return out;
}
Result<SlotFences> MemoryStore::slot_fences(const SlotSet& slots,
                                            std::optional<std::string_view> after) const {
  const std::lock_guard lock(impl_->applying_);
  return impl_->slot_fences(slots, after);
}
Result<grant::FencingToken> MemoryStore::fence(std::string_view key) const {
  const std::lock_guard lock(impl_->applying_);
  return impl_->fence(key);
}

Result<std::optional<std::size_t>> MemoryStore::length(std::string_view key) const {
  const Shard& shard = impl_->shard(key);
  const std::string owned(key);
  const std::lock_guard lock(shard.mutex);
  const Value* value = shard.find(owned);
  if (value == nullptr) return std::optional<std::size_t>();
  return std::optional<std::size_t>(value->bytes.size());
}

Result<std::vector<replica::SessionTable::Session>> MemoryStore::sessions() const {
  return impl_->sessions_.list();
}

Result<std::optional<FoundLease>> MemoryStore::find_lease(grant::LeaseId id,
                                                          std::string_view name) const {
  return impl_->leases_.find(id, name);
}
Result<std::optional<grant::LeaseTable::Lease>> MemoryStore::lease_terms(
    grant::LeaseId id, std::string_view name) const {
  return impl_->leases_.terms(id, name);
}
Result<std::vector<grant::LeaseTable::Lease>> MemoryStore::leases_after(grant::LeaseId after,
                                                                        std::size_t count) const {
  return impl_->leases_.list(after, count);
}
Result<LeaseChanges> MemoryStore::lease_changes(std::uint64_t cursor) const {
  return impl_->leases_.changes(cursor);
}

const EventHistory& MemoryStore::events() const {
  return impl_->events_;
}
const Users& MemoryStore::users() const {
  return impl_->users_;
}
const Slots& MemoryStore::slots() const {
  return impl_->slots_;
}

std::uint64_t MemoryStore::size() const {
  return impl_->keys_.load(std::memory_order_acquire);
}
std::uint64_t MemoryStore::fences() const {
  return impl_->fence_count_.load(std::memory_order_acquire);
}
std::uint64_t MemoryStore::revision() const {
  return impl_->revision_.load(std::memory_order_acquire);
}
raft::Index MemoryStore::applied_index() const {
  return raft::Index(impl_->applied_.load(std::memory_order_acquire));
}

}  // namespace leasehold::kv
