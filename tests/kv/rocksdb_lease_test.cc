// Leases of clients on disk: after crashes, after a restore, and records that no build writes.
#include <leasehold/kv/query.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/tests/kv/command_source.h>
#include <leasehold/tests/kv/lease_support.h>
#include <leasehold/tests/kv/snapshot_support.h>
#include <leasehold/tests/kv/store_support.h>

#include <rocksdb/db.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace leasehold::kv::testing {
namespace {

using grant::LeaseId;
using std::chrono::seconds;
using ::testing::HasSubstr;

/// What the store chooses first.
constexpr std::uint64_t kFirst = std::uint64_t{1} << 32U;

/// Random commands about few leases and few keys.
class LeaseSource {
 public:
  explicit LeaseSource(std::uint64_t seed) : commands_(seed) {}

  Bytes next() {
    Random& random = commands_.random();
    const LeaseId id(random.below(5) + 1);
    const std::string key = "key" + std::to_string(random.below(24));
    const std::string name = random.chance(1, 2) ? "" : "n" + std::to_string(random.below(3));
    ++made_;
    switch (random.below(9)) {
      case 0: {
        GrantLease grant{id, seconds(1), name, "h"};
        if (random.chance(1, 2)) grant.terms.grace = std::chrono::milliseconds(1);
        if (random.chance(1, 2)) grant.terms.delay = std::chrono::milliseconds(2);
        grant.terms.soft = random.chance(1, 3);
        grant.asked_at_ms = random.between(0, 3);
        return encoded(grant);
      }
      case 1:
        if (random.chance(1, 2)) return encoded(RenewLeases{{id}});
        return encoded(RenewNamed{{{id, ""}, {LeaseId(0), "n1"}}});
      case 2: return encoded(AttachKey{random.chance(1, 4) ? LeaseId(0) : id, key});
      case 3: return random.chance(1, 3) ? encoded(RevokeLease{id}) : commands_.next();
      case 4: {
        // Those of keys, too: their ids are the stamps of their grants.
        const std::uint64_t stamp = random.below(made_) + 1;
        return encoded(expire(1, {{id.value(), random.below(made_)},
                                  {1, made_ / 9},
                                  {grant::kKeyLeaseIdMin.value() + stamp, stamp}}));
      }
      case 5: return encoded(fenced(key, "f", random.below(made_) + 1));
      case 6: {
        Transaction several{{}, {leased(key, "1", id.value()), IncrBy{key, 1}}};
        several.operations.push_back(GrantLease{LeaseId(0), seconds(1), name, "h"});
        if (random.chance(1, 3)) several.operations.push_back(RevokeLease{id});
        return encoded(several);
      }
      case 7:
        if (random.chance(1, 3)) return encoded(SetSequential{"key", "s", id});
        if (!name.empty()) return encoded(WithNamedLease{name, Set{key, "v"}});
        return encoded(leased(key, "v", id.value()));
      default: return commands_.next();
    }
  }

 private:
  CommandSource commands_;
  std::uint64_t made_ = 1;
};

/// Keys name the leases that name them.
void expect_whole(const Store& store) {
  std::map<std::string, LeaseId> attached;
  const auto leases = store.leases_after(LeaseId(0), 100000).value();
  for (const auto& lease : leases) {
    const auto found = store.find_lease(lease.id, "").value();
    // That of a key does not outlive it.
    ASSERT_TRUE(!grant::is_of_key(lease.id) || found->keys.size() == 1);
    for (const std::string& key : found->keys) {
      ASSERT_TRUE(attached.emplace(key, lease.id).second) << key;
    }
  }
  std::size_t keys = 0;
  const auto all = store.keys_after(std::nullopt, 1000).value();
  for (const std::string& key : all) {
    ++keys;
    const auto at = attached.find(key);
    ASSERT_EQ(store.get(key).value()->lease, at == attached.end() ? LeaseId(0) : at->second);
    if (at != attached.end()) attached.erase(at);
  }
  ASSERT_TRUE(attached.empty()) << attached.begin()->first;
  ASSERT_EQ(store.size(), keys);
}

TEST(RocksdbLeases, AfterACrashTheLogGivesTheSameAgain) {
  LeaseSource source(93);
  std::vector<Bytes> commands;
  for (int i = 0; i < 2500; ++i) commands.push_back(source.next());
  const auto replies =
      execute_over_crashes(commands, 94, [](const Store& one, const Store& another) {
        EXPECT_EQ(list(one), list(another));
        expect_whole(one);
        expect_whole(another);
      });
  std::set<std::string> kinds;
  for (const std::string& reply : replies) kinds.insert(reply);
  for (const char* kind : {"error 13", "error 14", "error 15", "OK", "[429496"}) {
    EXPECT_TRUE(std::any_of(kinds.begin(), kinds.end(), [&](const std::string& seen) {
      return seen.find(kind) != std::string::npos;
    })) << kind;
  }
}

TEST(RocksdbLeases, ARestoredStoreGoesOnWithThem) {
  const TemporaryFolder folder;
  const auto from = open_store(folder.path("from"));
  run(*from, grant(0, "n"));
  run(*from, leased("a", "1", kFirst));
  const auto snapshot = from->take_snapshot().value();
  auto options = store_options(folder.path("to"));
  options.cluster_id = 78;
  ASSERT_TRUE(RocksdbStore::restore(options, *snapshot));
  const auto to = RocksdbStore::open(options).value();
  EXPECT_EQ(list(*to), list(*from));
  EXPECT_EQ(run(*to, grant(0)), "[4294967297,3,]");
}

/// What a store says that is opened on a record that no build writes.
std::string refusal_of(std::string_view key, std::string_view record) {
  const TemporaryFolder folder;
  const std::string dir = folder.path("kv");
  {
    const auto store = open_store(dir);
    run(*store, grant(7, "n"));
    run(*store, leased("a", "1", 7));
  }
  rocksdb::DB* opened = nullptr;
  EXPECT_TRUE(rocksdb::DB::Open(rocksdb::Options(), dir + "/db-1", &opened).ok());
  EXPECT_TRUE(
      opened->Put(rocksdb::WriteOptions(), {key.data(), key.size()}, {record.data(), record.size()})
          .ok());
  delete opened;
  const auto store = RocksdbStore::open(store_options(dir));
  return store ? "accepted" : store.error().message;
}

TEST(RocksdbLeases, WrongRecordsAreRefusedByName) {
  const std::string seventh = std::string(kLeaseSpace) + std::string("\0\0\0\0\0\0\0\7", 8);
  const std::string eighth = std::string(kLeaseSpace) + std::string("\0\0\0\0\0\0\0\10", 8);
  std::string lease(1 + 8 + 8 + 8 + 8 + 1 + 4 + 4 + 4, '\0');
  lease[0] = 3;
  lease[8] = 1;      // token
  lease[16] = 1;     // stamp
  lease[21] = 0x10;  // time to live
  EXPECT_EQ(refusal_of(seventh, lease), "accepted");
  EXPECT_EQ(refusal_of(eighth, lease), "accepted");
  EXPECT_THAT(refusal_of(eighth, ""), HasSubstr("the record of lease 8: "));
  EXPECT_THAT(refusal_of(eighth, lease.substr(0, 45)), HasSubstr("the record of lease 8: "));
  std::string wrong = lease;
  wrong[16] = 2;
  EXPECT_THAT(refusal_of(eighth, wrong), HasSubstr("its stamp was never given"));
  wrong = lease;
  wrong[0] = 9;
  EXPECT_THAT(refusal_of(eighth, wrong), HasSubstr("lease format 9, this build knows 4"));
  wrong = lease;
  wrong[33] = 8;
  EXPECT_THAT(refusal_of(eighth, wrong), HasSubstr("unknown flags"));
  wrong[33] = 2;
  EXPECT_THAT(refusal_of(eighth, wrong), HasSubstr("a delayed lease has no lock delay"));
  EXPECT_THAT(refusal_of(eighth + "x", lease), HasSubstr("the key of a lease record"));
  EXPECT_THAT(refusal_of(kNewestLeaseKey, "x"), HasSubstr("the newest lease record has format"));
  const std::string loose = std::string(kAttachedSpace) + std::string("\0\0\0\0\0\0\0\10k", 9);
  EXPECT_THAT(refusal_of(loose, ""), HasSubstr("a key of lease 8 is damaged"));
  // That of a key.
  const std::string of_key = std::string(kLeaseSpace) + std::string("\200\0\0\0\0\0\0\1", 8);
  std::string time = lease.substr(0, 25);
  time[0] = 2;
  EXPECT_THAT(refusal_of(of_key, lease), HasSubstr("not of this format"));
  EXPECT_THAT(refusal_of(of_key, time + "x"), HasSubstr("its length is wrong"));
  EXPECT_THAT(refusal_of(eighth, time), HasSubstr("not of this format"));
  EXPECT_THAT(refusal_of(of_key, time), HasSubstr("the lease of a key has no key"));
}

// Data of older builds without leases is read, and a store without leases writes the same bytes.
TEST(RocksdbLeases, AStoreWithoutLeasesIsThatOfOlderBuilds) {
  const TemporaryFolder folder;
  const std::string dir = folder.path("kv");
  {
    const auto store = open_store(dir);
    run(*store, Set{"a", "1"});
    run(*store, grant(7));
    run(*store, leased("b", "1", 7));
  }
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::OpenForReadOnly(rocksdb::Options(), dir + "/db-1", &opened).ok());
  std::string plain;
  std::string with_lease;
  EXPECT_TRUE(opened->Get(rocksdb::ReadOptions(), "\1a", &plain).ok());
  EXPECT_TRUE(opened->Get(rocksdb::ReadOptions(), "\1b", &with_lease).ok());
  delete opened;
  EXPECT_EQ(plain, encode_record({1, 1, 1}) + "1");
  EXPECT_EQ(with_lease[0], 2);
  EXPECT_EQ(with_lease.size(), 1U + 4 * 8 + 1);
}

}  // namespace
}  // namespace leasehold::kv::testing
