// RecordCache: the records of keys that were read lately, in memory, in front of RocksDB.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::kv {

/// One for all stores of a process, each of whose databases is an *owner*.
///
/// A place is a set of entries in one cache line, which its version guards: it is odd while the set
/// changes. An entry names the first of a chain of blocks, which hold the key and the record. What
/// a chain holds is written before an entry names it, and the chain is written again only after no
/// entry names it any more.
///
/// find() takes no lock and writes nothing but the mark that the entry was used, once. It reads the
/// version, the entry, the chain, and the version again, with acquire; all are written with
/// release. If it has read a word of a later use of a block, it also sees the version that took the
/// entry away, and finds nothing. So a thread that stops in it keeps nobody waiting.
///
/// Any thread, but for a Write: one thread writes to an owner.
class RecordCache {
 public:
  /// A key and its record that have more bytes than this together are not kept.
  static constexpr std::size_t kBytesMax = std::size_t{16} << 10U;
  /// The least that a cache takes.
  static constexpr std::size_t kLeastBytes = std::size_t{256} << 10U;

  /// Takes about `bytes`, at least kLeastBytes and at most 64 GiB, as they are needed.
  explicit RecordCache(std::size_t bytes);

  struct Stats {
    std::uint64_t bytes = 0;    ///< that the records take
    std::uint64_t evicted = 0;  ///< records that went for others, so far
  };
  Stats stats() const;

 private:
  friend class CachedRecords;
  friend class RecordCacheSteps;  ///< in the tests: stops a reader between two steps

  // Words of 64 bits. The first one of a block is the number of the next block of the chain; the
  // head has the owner and both lengths behind it. The key begins at a word, and so does the
  // record. Blocks come in chunks, as they are needed; there is no block 0.
  static constexpr std::size_t kBlockWords = 32;
  static constexpr std::size_t kHeadWords = 3;
  static constexpr std::size_t kChunkBlocks = 256;
  static constexpr std::size_t kWays = 7;
  using Block = std::array<std::atomic<std::uint64_t>, kBlockWords>;
  using Chunk = std::array<Block, kChunkBlocks>;
  struct alignas(64) Set {
    std::atomic<std::uint64_t> version{0};
    /// 0, or the head of the chain (32 bits), the tag of the key (31), and whether it was used.
    std::array<std::atomic<std::uint64_t>, kWays> entries{};
  };
  class Reader;
  class SetLock;
  struct Key {
    std::uint64_t owner;
    std::string_view bytes;
    std::uint64_t hash;
  };

  static Key key_of(std::uint64_t owner, std::string_view key);
  Set& set_of(const Key& key) { return sets_[key.hash & set_mask_]; }
  Block* block(std::uint64_t number) const;

  /// An entry that may be the key's, and when it was.
  struct Look {
    Set& set;
    std::uint64_t version = 0;
    std::size_t way = std::size_t(-1);  ///< before the first
    std::uint64_t entry = 0;            ///< 0: there is none
  };
  Look look(const Key& key);
  static void go_on(Look& look, const Key& key);
  static bool is_as_it_was(const Look& look);
  bool find(const Key& key, std::string& record);
  /// Whether the chain is that of the key. `record`, if it is not null, becomes its record.
  bool read_chain(std::uint64_t head, const Key& key, std::string* record) const;
  /// The way of the key's entry; none: kWays. Under the lock of the set.
  std::size_t way_of(const Set& set, const Key& key) const;
  /// The head of a chain with the record; 0: there is no room just now.
  std::uint64_t make_chain(const Key& key, std::string_view record);
  static std::size_t way_for_another(const Set& set, const Key& key);
  /// The key's entry names the chain from now on, unless `epoch` is another one than `noted`. A new
  /// entry counts as `used`.
  void place(const Key& key, std::uint64_t chain, bool used,
             const std::atomic<std::uint64_t>& epoch, std::uint64_t noted);
  /// Whether there was an entry.
  bool remove(const Key& key);
  /// Nobody names the chain any more; 0 is none.
  void give_back(std::uint64_t chain);

  // Under mutex_.
  std::uint64_t take_block();
  void free_chain(std::uint64_t chain);
  void free_returned();
  void evict_some();

  const std::size_t block_count_;
  const std::size_t set_mask_;
  std::vector<std::atomic<Chunk*>> chunks_;
  std::vector<Set> sets_;
  /// Chains that nobody names any more, linked by the second word of their heads.
  std::atomic<std::uint64_t> returned_{0};
  std::atomic<std::uint64_t> next_owner_{1};
  std::atomic<std::uint64_t> used_{0}, evicted_{0};

  std::mutex mutex_;
  // Under mutex_.
  std::vector<std::unique_ptr<Chunk>> owned_chunks_;
  std::uint64_t fresh_ = 1;  ///< the blocks from here on were never used
  std::uint64_t free_ = 0;   ///< the first of those that are free again
  std::size_t hand_ = 0;     ///< the set from which the next records go
};

/// The records of one database in the cache.
///
/// Why a reader never finds a record that is older than what another read has shown. The database
/// changes at one instant. Before it, the writer makes the epoch odd and takes the records of all
/// keys that change out of the cache; after it, it makes the epoch even. What a reader puts in was
/// read from the database between two looks at the epoch that found the same even number, the
/// second one under the lock of the place. If the writer has made the epoch odd after that look, it
/// takes the record out again, under the same lock, before the database changes.
class CachedRecords {
 public:
  /// Before the first read. Null: nothing is kept, as before.
  void keep_in(std::shared_ptr<RecordCache> cache);

  /// Replaces `record` by that of the key, if it is there. Any thread.
  bool find(std::string_view key, std::string& record) const;

  /// What a reader has to note before it reads the database.
  std::uint64_t epoch() const { return epoch_.load(); }
  /// The record that the database had after `epoch` was noted. Any thread.
  void keep(std::string_view key, std::string_view record, std::uint64_t epoch);

  /// The database is about to change: from here until the end of this its records of the keys that
  /// were named are not in the cache. One thread.
  class Write {
   public:
    explicit Write(CachedRecords& records);
    ~Write();
    Write(const Write&) = delete;
    Write& operator=(const Write&) = delete;
    /// Before the database changes. Whether a record was there.
    bool take_out(std::string_view key);
    /// After it has changed. One that is not `used` goes first when the memory is used up.
    void put_in(std::string_view key, std::string_view record, bool used);

   private:
    CachedRecords& records_;
  };

 private:
  std::shared_ptr<RecordCache> cache_;
  std::uint64_t owner_ = 0;
  std::atomic<std::uint64_t> epoch_{0};  ///< odd: the database is about to change
};

}  // namespace leasehold::kv
