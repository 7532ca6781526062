// Whether a store holds what its twin says, and nothing else.
#pragma once

#include <leasehold/tests/kv/store_twin.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace leasehold::kv::testing {

inline void expect_same(const Store& store, const Twin& twin) {
  EXPECT_EQ(store.size(), twin.cells.size());
  EXPECT_EQ(store.revision(), twin.revision);
  std::set<std::string> keys;
  for (int i = 0; i < 24; ++i) keys.insert("key" + std::to_string(i));
  for (const auto& [key, cell] : twin.cells) keys.insert(key);
  for (const std::string& key : keys) {
    const auto got = store.get(key);
    ASSERT_TRUE(got) << got.error().message;
    const auto cell = twin.cells.find(key);
    EXPECT_EQ(store.exists(key).value(), cell != twin.cells.end());
    ASSERT_EQ(got.value().has_value(), cell != twin.cells.end()) << key;
    if (cell == twin.cells.end()) continue;
    EXPECT_EQ(got.value()->bytes.view(), cell->second.bytes);
    EXPECT_EQ(got.value()->create_revision, cell->second.create_revision);
    EXPECT_EQ(got.value()->mod_revision, cell->second.mod_revision);
    EXPECT_EQ(got.value()->version, cell->second.version);
    EXPECT_EQ(got.value()->lease.value(), cell->second.lease_id);
  }
  // None is left over without its key, and none has a key too many.
  std::map<std::uint64_t, grant::LeaseTable::Lease> left;
  const auto leases = store.leases_after(grant::LeaseId(0), 1000).value();
  for (const auto& lease : leases) left.emplace(lease.id.value(), lease);
  for (const auto& [key, cell] : twin.cells) {
    if (cell.lease_id == 0) continue;
    const auto at = left.find(cell.lease_id);
    ASSERT_NE(at, left.end()) << key;
    EXPECT_EQ(at->second.stamp, cell.stamp);
    EXPECT_EQ(at->second.ttl, cell.ttl);
    EXPECT_EQ(store.find_lease(at->second.id, "").value()->keys, std::vector<std::string>{key});
    left.erase(at);
  }
  EXPECT_TRUE(left.empty()) << left.size() << " leases without a key";
}

}  // namespace leasehold::kv::testing
