#include <leasehold/lab/place.h>

#include <algorithm>
#include <utility>

namespace leasehold::lab {

const sim::SideGroup* Place::side() const {
  const auto& sides = node_->side_groups();
  const auto found = std::find_if(sides.begin(), sides.end(),
                                  [this](const auto& one) { return one->group() == group_; });
  return found == sides.end() ? nullptr : found->get();
}

bool Place::up() const {
  return node_->up() && (side() == nullptr || side()->core() != nullptr);
}

bool Place::leads() const {
  if (side() == nullptr) return node_->leads();
  return up() && side()->core()->role() == raft::Role::leader;
}

raft::Term Place::term() const {
  return side() == nullptr ? node_->running().term() : side()->core()->term();
}

const replica::LeaseView& Place::view() const {
  return side() == nullptr ? node_->view() : side()->view();
}

void Place::post(replica::Event event) const {
  if (side() == nullptr) return node_->post(std::move(event));
  node_->post_side(group_, std::move(event));
}

std::uint64_t Place::value() const {
  if (side() == nullptr) return node_->machine().value(kKey);
  // Each command sets the one register: the newest one is the whole state.
  const auto newest = sim::RegisterMachine::decode_command(side()->newest_command());
  return newest ? newest->value : 0;
}

raft::Index Place::applied() const {
  return side() == nullptr ? node_->machine().applied() : view().applied();
}

std::vector<Place> places_of(const std::vector<sim::SimNode*>& nodes, raft::GroupId group) {
  std::vector<Place> places;
  places.reserve(nodes.size());
  for (sim::SimNode* node : nodes) places.emplace_back(*node, group);
  return places;
}

const Place* newest_leader(const std::vector<Place>& places) {
  const Place* newest = nullptr;
  for (const Place& place : places) {
    if (!place.leads()) continue;
    if (newest == nullptr || place.term() > newest->term()) newest = &place;
  }
  return newest;
}

}  // namespace leasehold::lab
