// The state of a replica while slots are arriving: nothing in it is damaged.
#include <leasehold/kv/slots.h>
#include <leasehold/tests/kv/snapshot_support.h>
#include <leasehold/tests/kv/store_support.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace leasehold::kv::testing {
namespace {

constexpr std::uint32_t kBar = 5061;

class ArrivingKeys : public EachStore {
 protected:
  std::string run(Store& store, const Command& command) {
    return apply(store, store.applied_index().value() + 1, {encoded(command)}).at(0);
  }
  void import_two() {
    run(*store_, Set{"foo", "v"});
    EXPECT_EQ(run(*store_, ExpectSlots{2, 2, 1, 7, {{kBar, 1}}}), "0");
    ImportKeys import{1, 7, {}};
    for (const char* key : {"bar", "{bar}2"}) {
      MovedKey moved;
      moved.key = key;
      moved.exists = true;
      moved.value = "v";
      moved.create_revision = moved.mod_revision = moved.version = 1;
      import.keys.push_back(moved);
    }
    EXPECT_EQ(run(*store_, import), "2");
  }
};

TEST_P(ArrivingKeys, ASnapshotWithThemIsWhole) {
  import_two();
  EXPECT_EQ(store_->size(), 1U);
  const auto snapshot = store_->take_snapshot();
  ASSERT_TRUE(snapshot);
  const auto other = make("other");
  ASSERT_TRUE(other->install_snapshot(
      BytesSnapshot(bytes_of(*snapshot.value()), snapshot.value()->last())));
  if (const auto* on_disk = dynamic_cast<const RocksdbStore*>(other.get())) {
    EXPECT_EQ(on_disk->distrusted(), "");
  }
  EXPECT_EQ(other->size(), 1U);
  for (Store* store : {store_.get(), other.get()}) {
    EXPECT_EQ(run(*store, TakeSlots{1, 7, 9}), "1");
    EXPECT_EQ(store->size(), 3U);
    EXPECT_EQ(run(*store, Size{}), "3");
  }
}

TEST_P(ArrivingKeys, AScrubMissesNone) {
  if (GetParam() == StoreKind::memory) return;
  import_two();
  const auto scrubbed = [this] {
    return static_cast<RocksdbStore&>(*store_).scrub([](std::uint64_t) { return true; });
  };
  auto found = scrubbed();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found.value()->kept, found.value()->stored);
  EXPECT_EQ(run(*store_, TakeSlots{1, 7, 9}), "1");
  found = scrubbed();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(run(*store_, BeginMove{2, 2, 1, {kBar}}).empty(), false);
  found = scrubbed();
  ASSERT_TRUE(found) << found.error().message;
}

INSTANTIATE_TEST_SUITE_P(Stores, ArrivingKeys, each_store(), name_of_store);

}  // namespace
}  // namespace leasehold::kv::testing
