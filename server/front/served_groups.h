// The groups that a server serves, and which of them has a key.
#pragma once

#include <leasehold/base/assert.h>
#include <leasehold/kv/lease_keeper.h>
#include <leasehold/kv/store.h>
#include <leasehold/node/group.h>
#include <leasehold/server/front/backup_calls.h>
#include <leasehold/server/front/group_place.h>
#include <leasehold/server/front/slot_routes.h>
#include <leasehold/server/front/state_health.h>
#include <leasehold/server/front/trace_calls.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace leasehold::server {

/// The replica of a group here, the state that it applies to, and what is known about that. All
/// outlive the front.
struct ServedGroup {
  node::Group& group;
  const kv::Store& store;
  const StateHealth& health;
  /// Renews leases under the leader lease. Null: they are renewed by the log.
  kv::LeaseKeeper* lease_keeper = nullptr;
  BackupCalls backups{};
  TraceCalls trace{};
  /// Null: it is here.
  const GroupPlace* place = nullptr;
  /// How many sessions are open, as far as the leader has counted. May be empty. Any thread.
  std::function<std::uint64_t()> sessions{};

  /// Whether the replica here is a member of the group. Else the store is empty, and clients are
  /// sent to the nodes that the place names.
  bool here() const { return place == nullptr || place->here(); }
  /// GroupPlace::stay(). With another one the replica, and so the store, is another one.
  std::uint64_t stay() const { return place == nullptr ? 1 : place->stay(); }
};

/// Any thread; constant once the first connection is served, but for the slots that move. At first
/// each group has a range of slots, all of nearly the same length.
class ServedGroups {
 public:
  /// At least one, in the order of their slots.
  explicit ServedGroups(std::vector<ServedGroup> groups) : groups_(std::move(groups)) {
    LEASEHOLD_ASSERT(!groups_.empty() && groups_.size() <= kv::kSlots);
    std::vector<const kv::Store*> stores;
    for (const ServedGroup& group : groups_) stores.push_back(&group.store);
    routes_ = std::make_unique<SlotRoutes>(std::move(stores));
  }

  /// It has the users, and what is of no key.
  const ServedGroup& home() const { return groups_.front(); }
  ServedGroup& home() { return groups_.front(); }
  const std::vector<ServedGroup>& all() const { return groups_; }
  bool many() const { return groups_.size() > 1; }
  /// 0 is the first group. `slot` is below kv::kSlots.
  std::size_t number_of_slot(std::uint32_t slot) const { return routes_->group_of(slot); }
  std::uint64_t routes_version() const { return routes_->version(); }
  const ServedGroup& of_slot(std::uint32_t slot) const { return groups_[number_of_slot(slot)]; }
  /// Of one of them, from 0 on.
  std::size_t number_of(const ServedGroup& group) const {
    return static_cast<std::size_t>(&group - groups_.data());
  }
  /// The routes of the slots, to wait for one that is on its way.
  SlotRoutes& routes() const { return *routes_; }

 private:
  std::vector<ServedGroup> groups_;
  std::unique_ptr<SlotRoutes> routes_;
};

}  // namespace leasehold::server
