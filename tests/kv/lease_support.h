// For the tests of leases of clients: commands about them, and both stores.
#pragma once

#include <leasehold/kv/query.h>
#include <leasehold/tests/kv/store_support.h>

#include <gmock/gmock.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::kv::testing {

inline std::string run(Store& store, const Command& command) {
  return apply(store, store.applied_index().value() + 1, {encoded(command)}).at(0);
}

inline Command grant(std::uint64_t id, std::string_view name = "") {
  return GrantLease{grant::LeaseId(id), std::chrono::seconds(10), name, "me"};
}
inline Set leased(std::string_view key, std::string_view value, std::uint64_t id) {
  Set set{key, value};
  set.lease = grant::LeaseId(id);
  return set;
}
inline Set fenced(std::string_view key, std::string_view value, std::uint64_t token) {
  Set set{key, value};
  set.token = grant::FencingToken(token);
  return set;
}
inline Command expire(std::uint64_t term,
                      std::vector<std::pair<std::uint64_t, std::uint64_t>> seen) {
  ExpireLeases command{raft::Term(term), {}};
  for (const auto& [id, stamp] : seen) command.leases.push_back({grant::LeaseId(id), stamp});
  return command;
}

/// Everything about leases: "7 token 1 stamp 1 'name' of 'me': a b; 8 ..."
inline std::string list(const Store& store) {
  std::string out;
  const auto leases = store.leases_after(grant::LeaseId(0), 100000).value();
  for (const auto& lease : leases) {
    const auto found = store.find_lease(lease.id, "").value().value();
    EXPECT_EQ(found.lease, lease);
    EXPECT_EQ(store.lease_terms(lease.id, "").value(), lease);
    if (!lease.name.empty()) {
      EXPECT_EQ(store.find_lease(grant::LeaseId(0), lease.name).value().value().lease, lease);
      EXPECT_EQ(store.lease_terms(grant::LeaseId(0), lease.name).value(), lease);
    }
    if (!out.empty()) out += "; ";
    out += std::to_string(lease.id.value()) + " token " + std::to_string(lease.token.value()) +
           " stamp " + std::to_string(lease.stamp) + " '" + lease.name + "' of '" + lease.holder +
           "':";
    for (const std::string& key : found.keys) out += " " + key;
    if (lease.delayed) out += " (delayed)";
  }
  return out;
}

class LeaseContract : public EachStore {
 protected:
  std::string run(const Command& command) { return testing::run(*store_, command); }
  std::string ask(const Operation& operation) {
    return text(encode_reply(query(operation, *store_).value()));
  }
  bool exists(std::string_view key) { return store_->exists(key).value(); }
};

}  // namespace leasehold::kv::testing
