// Groups that share slots give no id of a lease or session twice.
#include <leasehold/kv/slots.h>
#include <leasehold/tests/kv/snapshot_support.h>
#include <leasehold/tests/kv/store_support.h>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace leasehold::kv::testing {
namespace {

class SlotIds : public EachStore {
 protected:
  std::unique_ptr<Store> of_group(const std::string& name, std::uint64_t number) {
    const std::uint64_t above = (number - 1) * kIdsOfGroup;
    if (GetParam() == StoreKind::memory) {
      return std::make_unique<MemoryStore>(EventHistory::Limits(), above);
    }
    RocksdbStoreOptions options = store_options(folder_.path(name));
    options.ids_above = above;
    auto opened = RocksdbStore::open(std::move(options));
    EXPECT_TRUE(opened);
    return std::move(opened).value();
  }
  static std::string run(Store& store, const Command& command) {
    return apply(store, store.applied_index().value() + 1, {encoded(command)}).at(0);
  }
  static std::string grant(Store& store, std::uint64_t chosen = 0) {
    return run(store, GrantLease{grant::LeaseId(chosen), std::chrono::seconds(1), "", "holder"});
  }
};

TEST_P(SlotIds, EachGroupHasItsOwn) {
  const auto first = of_group("first", 1);
  const auto third = of_group("third", 3);
  EXPECT_EQ(run(*first, OpenSession{}), "1");
  EXPECT_EQ(run(*third, OpenSession{}), "35184372088833");
  EXPECT_EQ(run(*third, OpenSession{}), "35184372088834");
  EXPECT_EQ(grant(*first), "[4294967296,1,]");
  EXPECT_EQ(grant(*third), "[35184372088833,1,]");
  EXPECT_EQ(grant(*third, 7), "[7,2,]") << "a client chooses as before";
  EXPECT_EQ(grant(*third), "[35184372088834,3,]");
  EXPECT_EQ(run(*third, Once{replica::SessionId(1), 1, 1, encoded(IncrBy{"k", 1}).view()}),
            run(*of_group("fourth", 4),
                Once{replica::SessionId(1), 1, 1, encoded(IncrBy{"k", 1}).view()}))
      << "none has the session of the first group";
}

TEST_P(SlotIds, TheyGoOnBehindASnapshot) {
  const auto from = of_group("from", 2);
  EXPECT_EQ(run(*from, Set{"k", "v"}), "OK");
  const auto early = from->take_snapshot();
  EXPECT_EQ(run(*from, OpenSession{}), "17592186044417");
  EXPECT_EQ(grant(*from), "[17592186044417,2,]");
  const auto late = from->take_snapshot();
  for (const auto* snapshot : {&early, &late}) {
    ASSERT_TRUE(*snapshot);
    const auto to = of_group(snapshot == &early ? "early" : "late", 2);
    ASSERT_TRUE(to->install_snapshot(
        BytesSnapshot(bytes_of(*snapshot->value()), snapshot->value()->last())));
    const bool is_early = snapshot == &early;
    EXPECT_EQ(run(*to, OpenSession{}), is_early ? "17592186044417" : "17592186044418");
    EXPECT_EQ(grant(*to), is_early ? "[17592186044417,2,]" : "[17592186044418,3,]");
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, SlotIds, each_store(), name_of_store);

}  // namespace
}  // namespace leasehold::kv::testing
