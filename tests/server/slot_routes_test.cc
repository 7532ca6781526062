// What a node knows of where the slots are.
#include <leasehold/kv/memory_store.h>
#include <leasehold/server/front/slot_routes.h>

#include <gtest/gtest.h>
#ifdef __linux__
#include <malloc.h>
#endif

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::server {
namespace {

// A read may see the records of a store before the routes have heard of them.
TEST(SlotRoutesTest, KnowsWhatAStoreSaysBeforeItsNewsComes) {
  kv::MemoryStore first;
  kv::MemoryStore second;
  std::unique_ptr<SlotRoutes> routes;
  std::uint64_t before = 0;
  std::vector<std::size_t> changed;
  const auto listener = first.slots().listen([&] {
    changed.push_back(routes->changed_since(before).count());
    before = routes->version();
  });
  routes = std::make_unique<SlotRoutes>(std::vector<const kv::Store*>{&first, &second});
  before = routes->version();
  EXPECT_TRUE(routes->changed_since(before).none());
  raft::Index index;
  for (const kv::Command& command :
       {kv::Command(kv::BeginMove{1, 2, 2, {3, 4}}), kv::Command(kv::FreezeMove{1}),
        kv::Command(kv::LeaveSlots{1})}) {
    index = index + 1;
    const Bytes bytes = kv::encode_command(command).value();
    first.apply({{{raft::Term(1), index}, bytes.view()}}, index);
  }
  EXPECT_EQ(changed.front(), 0U) << "copying is no change";
  EXPECT_EQ(changed.back(), 2U);
  EXPECT_EQ(routes->group_of(3), 1U);
  first.slots().forget(listener);
}

/// What is freed is overwritten meanwhile, where the C library can do that.
class FreedIsOverwritten {
 public:
  FreedIsOverwritten() { set(0x5a); }
  ~FreedIsOverwritten() { set(0); }
  FreedIsOverwritten(const FreedIsOverwritten&) = delete;
  FreedIsOverwritten& operator=(const FreedIsOverwritten&) = delete;

 private:
  static void set([[maybe_unused]] int byte) {
#ifdef M_PERTURB
    mallopt(M_PERTURB, byte);
#endif
  }
};

// A key that is copied changes the records, and is no news: nothing keeps the store from doing so.
TEST(SlotRoutesTest, LooksAtTheRecordsOfAStoreThatReplacesThem) {
  constexpr std::uint32_t kCount = 1024;
  kv::MemoryStore first;
  kv::MemoryStore second;
  raft::Index index;
  const auto apply = [&second, &index](const kv::Command& command) {
    index = index + 1;
    const Bytes bytes = kv::encode_command(command).value();
    second.apply({{{raft::Term(1), index}, bytes.view()}}, index);
  };
  std::vector<kv::ExpectedSlot> expected;
  for (std::uint32_t slot = 0; slot < kCount; ++slot) expected.push_back({slot, 1});
  apply(kv::ExpectSlots{2, 2, 1, 7, expected});
  SlotRoutes routes({&first, &second});
  std::string key = "0";
  for (int i = 0; kv::slot_of(key) >= kCount; ++i) key = std::to_string(i);
  const FreedIsOverwritten overwritten;
  std::atomic<bool> enough = false;
  std::atomic<bool> done = false;
  std::thread copying([&] {
    kv::MovedKey moved;
    moved.key = key;
    for (int i = 0; i < 50000 && !enough; ++i) {
      moved.exists = i % 2 == 0;
      moved.create_revision = moved.mod_revision = moved.version = moved.exists ? 1 : 0;
      apply(kv::ImportKeys{1, 7, {moved}});
    }
    done = true;
  });
  for (int changed_meanwhile = 0; changed_meanwhile < 300 && !done;) {
    const std::uint64_t before = second.slots().changes();
    EXPECT_TRUE(routes.changed_since(routes.version()).none());
    if (second.slots().changes() != before) ++changed_meanwhile;
  }
  enough = true;
  copying.join();
  EXPECT_EQ(routes.group_of(0), 0U);
}

}  // namespace
}  // namespace leasehold::server
