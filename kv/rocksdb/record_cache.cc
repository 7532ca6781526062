#include <leasehold/base/assert.h>
#include <leasehold/kv/rocksdb/record_cache.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

namespace leasehold::kv {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::uint64_t kUsed = 1;
constexpr std::uint64_t kTag = 0xffff'fffe;
constexpr std::size_t kMostBytes = std::size_t{64} << 30U;
/// Of records that are found or not; a set has twice as many ways as it has records, about.
constexpr std::size_t kBlocksOfSet = 8;
/// Sets from which one insertion may take records.
constexpr int kSetsLookedAt = 64;

std::size_t words_of(std::size_t bytes) {
  return (bytes + kWord - 1) / kWord;
}

std::uint64_t head_of(std::uint64_t entry) {
  return entry >> 32U;
}

/// The lower bits of a hash choose the set.
std::uint64_t tag_of(std::uint64_t hash) {
  return (hash >> 32U) & kTag;
}

/// All bits of the owner and of the hash count in each bit of it.
std::uint64_t mixed(std::uint64_t owner, std::uint64_t hash) {
  std::uint64_t mix = hash + owner * 0x9e37'79b9'7f4a'7c15;
  mix ^= mix >> 32U;
  mix *= 0xd6e8'feb8'6659'fd93;
  mix ^= mix >> 32U;
  return mix;
}

}  // namespace

/// The words of a chain, one after the other. It may be changed meanwhile: then they mean nothing,
/// but there are no others than those of blocks.
class RecordCache::Reader {
 public:
  Reader(const RecordCache& cache, std::uint64_t head) : cache_(cache), block_(cache.block(head)) {}

  std::uint64_t word() {
    go_on();
    return block_ == nullptr ? 0 : (*block_)[at_++].load(std::memory_order_acquire);
  }
  /// The words that `bytes` take.
  void copy(char* to, std::size_t bytes) {
    // Most of a find: whole words, a block at a time.
    while (bytes >= kWord) {
      go_on();
      if (block_ == nullptr) return;
      const std::size_t words = std::min(bytes / kWord, kBlockWords - at_);
      for (std::size_t i = 0; i < words; ++i) {
        const std::uint64_t word = (*block_)[at_ + i].load(std::memory_order_acquire);
        std::memcpy(to + i * kWord, &word, kWord);
      }
      at_ += words;
      to += words * kWord;
      bytes -= words * kWord;
    }
    if (bytes == 0) return;
    const std::uint64_t last = word();
    std::memcpy(to, &last, bytes);
  }
  /// Whether the chain was as long as what was read of it.
  bool ok() const { return block_ != nullptr; }

 private:
  /// To the next block, at the end of one.
  void go_on() {
    if (at_ < kBlockWords) return;
    if (block_ != nullptr) block_ = cache_.block((*block_)[0].load(std::memory_order_acquire));
    at_ = 1;
  }

  const RecordCache& cache_;
  const Block* block_;
  std::size_t at_ = 1;
};

/// What it guards takes some instructions, so others wait by trying again.
class RecordCache::SetLock {
 public:
  explicit SetLock(Set& set) : set_(set) {
    while (!try_lock()) std::this_thread::yield();
  }
  ~SetLock() { set_.version.store(before_ + (changed_ ? 2 : 0), std::memory_order_release); }
  SetLock(const SetLock&) = delete;
  SetLock& operator=(const SetLock&) = delete;

  /// Returns what was there.
  std::uint64_t set(std::size_t way, std::uint64_t entry) {
    changed_ = true;
    const std::uint64_t old = set_.entries[way].load(std::memory_order_relaxed);
    set_.entries[way].store(entry, std::memory_order_release);
    return old;
  }

 private:
  bool try_lock() {
    before_ = set_.version.load(std::memory_order_relaxed);
    return before_ % 2 == 0 &&
           set_.version.compare_exchange_weak(before_, before_ + 1, std::memory_order_acquire);
  }

  Set& set_;
  std::uint64_t before_ = 0;
  bool changed_ = false;
};

RecordCache::RecordCache(std::size_t bytes)
    : block_count_(std::clamp(bytes, kLeastBytes, kMostBytes) / sizeof(Block)),
      set_mask_(std::bit_ceil(block_count_ / kBlocksOfSet) - 1),
      chunks_((block_count_ + kChunkBlocks - 1) / kChunkBlocks),
      sets_(set_mask_ + 1) {}

RecordCache::Stats RecordCache::stats() const {
  Stats stats;
  stats.bytes = used_.load(std::memory_order_relaxed) * sizeof(Block);
  stats.evicted = evicted_.load(std::memory_order_relaxed);
  return stats;
}

RecordCache::Key RecordCache::key_of(std::uint64_t owner, std::string_view key) {
  return {owner, key, mixed(owner, std::hash<std::string_view>{}(key))};
}

RecordCache::Block* RecordCache::block(std::uint64_t number) const {
  if (number == 0 || number >= block_count_) return nullptr;
  Chunk* const chunk = chunks_[number / kChunkBlocks].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &(*chunk)[number % kChunkBlocks];
}

RecordCache::Look RecordCache::look(const Key& key) {
  Look look{set_of(key)};
  look.version = look.set.version.load(std::memory_order_acquire);
  if (look.version % 2 == 0) go_on(look, key);
  return look;
}

void RecordCache::go_on(Look& look, const Key& key) {
  while (++look.way < kWays) {
    look.entry = look.set.entries[look.way].load(std::memory_order_acquire);
    if (look.entry != 0 && (look.entry & kTag) == tag_of(key.hash)) return;
  }
  look.entry = 0;
}

bool RecordCache::is_as_it_was(const Look& look) {
  return look.set.version.load(std::memory_order_relaxed) == look.version;
}

bool RecordCache::find(const Key& key, std::string& record) {
  for (Look at = look(key); at.entry != 0; go_on(at, key)) {
    if (!read_chain(head_of(at.entry), key, &record)) continue;
    if (!is_as_it_was(at)) return false;
    if ((at.entry & kUsed) == 0) {
      at.set.entries[at.way].compare_exchange_strong(at.entry, at.entry | kUsed,
                                                     std::memory_order_relaxed);
    }
    return true;
  }
  return false;
}

bool RecordCache::read_chain(std::uint64_t head, const Key& key, std::string* record) const {
  Reader in(*this, head);
  if (in.word() != key.owner) return false;
  const std::uint64_t lengths = in.word();
  const std::size_t size = lengths & 0xffff'ffff;
  if (lengths >> 32U != key.bytes.size() || size > kBytesMax) return false;
  for (std::size_t at = 0; at < key.bytes.size(); at += kWord) {
    const std::uint64_t word = in.word();
    const std::size_t count = std::min(kWord, key.bytes.size() - at);
    if (std::memcmp(&word, key.bytes.data() + at, count) != 0) return false;
  }
  if (record == nullptr) return in.ok();
  record->resize(size);
  in.copy(record->data(), size);
  return in.ok();
}

std::size_t RecordCache::way_of(const Set& set, const Key& key) const {
  for (std::size_t way = 0; way < kWays; ++way) {
    const std::uint64_t entry = set.entries[way].load(std::memory_order_relaxed);
    if (entry == 0 || (entry & kTag) != tag_of(key.hash)) continue;
    if (read_chain(head_of(entry), key, nullptr)) return way;
  }
  return kWays;
}

std::uint64_t RecordCache::make_chain(const Key& key, std::string_view record) {
  const std::size_t words = kHeadWords - 1 + words_of(key.bytes.size()) + words_of(record.size());
  const std::size_t blocks = (words + kBlockWords - 2) / (kBlockWords - 1);
  std::uint64_t head = 0;
  {
    // A thread that stops while it holds it costs the others a record, and no time.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return 0;
    for (std::size_t taken = 0; taken < blocks; ++taken) {
      const std::uint64_t next = take_block();
      if (next == 0) {
        free_chain(head);
        return 0;
      }
      (*block(next))[0].store(head, std::memory_order_release);
      head = next;
    }
  }
  Block* to = block(head);
  std::size_t at = 1;
  const auto put = [&](std::uint64_t word) {
    if (at == kBlockWords) {
      to = block((*to)[0].load(std::memory_order_relaxed));
      at = 1;
    }
    (*to)[at++].store(word, std::memory_order_release);
  };
  const auto put_bytes = [&put](std::string_view bytes) {
    for (std::size_t from = 0; from < bytes.size(); from += kWord) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + from, std::min(kWord, bytes.size() - from));
      put(word);
    }
  };
  put(key.owner);
  put(std::uint64_t{key.bytes.size()} << 32U | record.size());
  put_bytes(key.bytes);
  put_bytes(record);
  return head;
}

void RecordCache::place(const Key& key, std::uint64_t chain, bool used,
                        const std::atomic<std::uint64_t>& epoch, std::uint64_t noted) {
  if (chain == 0) return;
  Set& set = set_of(key);
  std::uint64_t free = chain;
  {
    SetLock lock(set);
    if (epoch.load() == noted) {
      const std::size_t own = way_of(set, key);
      const std::size_t way = own < kWays ? own : way_for_another(set, key);
      const std::uint64_t old = set.entries[way].load(std::memory_order_relaxed);
      if (own < kWays) used = (old & kUsed) != 0;
      lock.set(way, chain << 32U | tag_of(key.hash) | (used ? kUsed : 0));
      free = head_of(old);
      if (free != 0 && own == kWays) evicted_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  give_back(free);
}

/// One that is empty, or was not used, or any.
std::size_t RecordCache::way_for_another(const Set& set, const Key& key) {
  for (const std::uint64_t bits : {~std::uint64_t{0}, kUsed}) {
    for (std::size_t way = 0; way < kWays; ++way) {
      if ((set.entries[way].load(std::memory_order_relaxed) & bits) == 0) return way;
    }
  }
  return (key.hash >> 20U) % kWays;
}

bool RecordCache::remove(const Key& key) {
  Set& set = set_of(key);
  std::uint64_t free = 0;
  {
    SetLock lock(set);
    const std::size_t way = way_of(set, key);
    if (way == kWays) return false;
    free = head_of(lock.set(way, 0));
  }
  give_back(free);
  return true;
}

// ---- Blocks ----

void RecordCache::give_back(std::uint64_t chain) {
  if (chain == 0) return;
  std::uint64_t first = returned_.load(std::memory_order_relaxed);
  do {
    (*block(chain))[1].store(first, std::memory_order_release);
  } while (!returned_.compare_exchange_weak(first, chain, std::memory_order_acq_rel));
}

void RecordCache::free_returned() {
  std::uint64_t chain = returned_.exchange(0, std::memory_order_acq_rel);
  while (chain != 0) {
    const std::uint64_t next = (*block(chain))[1].load(std::memory_order_relaxed);
    free_chain(chain);
    chain = next;
  }
}

void RecordCache::free_chain(std::uint64_t chain) {
  while (chain != 0) {
    auto& link = (*block(chain))[0];
    const std::uint64_t next = link.load(std::memory_order_relaxed);
    link.store(free_, std::memory_order_release);
    free_ = std::exchange(chain, next);
    used_.fetch_sub(1, std::memory_order_relaxed);
  }
}

std::uint64_t RecordCache::take_block() {
  if (free_ == 0) free_returned();
  if (free_ == 0 && fresh_ == block_count_) evict_some();
  std::uint64_t taken = free_;
  if (taken != 0) {
    free_ = (*block(taken))[0].load(std::memory_order_relaxed);
  } else if (fresh_ < block_count_) {
    taken = fresh_++;
    auto& chunk = chunks_[taken / kChunkBlocks];
    if (chunk.load(std::memory_order_relaxed) == nullptr) {
      owned_chunks_.push_back(std::make_unique<Chunk>());
      chunk.store(owned_chunks_.back().get(), std::memory_order_release);
    }
  }
  if (taken != 0) used_.fetch_add(1, std::memory_order_relaxed);
  return taken;
}

/// Of the sets from the hand on: what was used since the hand came by stays for another turn.
void RecordCache::evict_some() {
  for (int looked = 0; looked < kSetsLookedAt && free_ == 0; ++looked) {
    Set& set = sets_[hand_];
    hand_ = (hand_ + 1) & set_mask_;
    SetLock lock(set);
    for (std::size_t way = 0; way < kWays; ++way) {
      const std::uint64_t entry = set.entries[way].load(std::memory_order_relaxed);
      if (entry == 0) continue;
      if ((entry & kUsed) != 0) {
        lock.set(way, entry & ~kUsed);
      } else {
        free_chain(head_of(lock.set(way, 0)));
        evicted_.fetch_add(1, std::memory_order_relaxed);
      }
    }
  }
}

// ---- The records of a database ----

void CachedRecords::keep_in(std::shared_ptr<RecordCache> cache) {
  cache_ = std::move(cache);
  if (cache_) owner_ = cache_->next_owner_.fetch_add(1, std::memory_order_relaxed);
}

bool CachedRecords::find(std::string_view key, std::string& record) const {
  return cache_ && cache_->find(RecordCache::key_of(owner_, key), record);
}

void CachedRecords::keep(std::string_view key, std::string_view record, std::uint64_t epoch) {
  if (!cache_ || epoch % 2 != 0) return;
  if (key.size() + record.size() > RecordCache::kBytesMax) return;
  const RecordCache::Key found = RecordCache::key_of(owner_, key);
  cache_->place(found, cache_->make_chain(found, record), false, epoch_, epoch);
}

CachedRecords::Write::Write(CachedRecords& records) : records_(records) {
  records_.epoch_.fetch_add(1);
}

CachedRecords::Write::~Write() {
  records_.epoch_.fetch_add(1);
}

bool CachedRecords::Write::take_out(std::string_view key) {
  return records_.cache_ && records_.cache_->remove(RecordCache::key_of(records_.owner_, key));
}

void CachedRecords::Write::put_in(std::string_view key, std::string_view record, bool used) {
  const std::uint64_t now = records_.epoch_.load();
  LEASEHOLD_ASSERT(now % 2 != 0);
  if (!records_.cache_ || key.size() + record.size() > RecordCache::kBytesMax) return;
  const RecordCache::Key found = RecordCache::key_of(records_.owner_, key);
  records_.cache_->place(found, records_.cache_->make_chain(found, record), used, records_.epoch_,
                         now);
}

}  // namespace leasehold::kv
