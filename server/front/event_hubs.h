// The hubs of one thread: each group has a history of its own.
#pragma once

#include <leasehold/server/front/event_hub.h>
#include <leasehold/server/front/served_groups.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace leasehold::server {

class EventHubs {
 public:
  /// `groups` outlives them.
  explicit EventHubs(const ServedGroups& groups) {
    for (const ServedGroup& group : groups.all()) {
      hubs_.push_back(std::make_unique<EventHub>(group.store.events()));
    }
  }
  /// By the number in ServedGroups::all().
  EventHub& of(std::size_t group) const { return *hubs_[group]; }

 private:
  std::vector<std::unique_ptr<EventHub>> hubs_;
};

}  // namespace leasehold::server
