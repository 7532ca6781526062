#include <leasehold/replica/places.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace leasehold::replica {
namespace {

/// More than a membership names, so there is always one to forget.
constexpr std::size_t kPlacesMax = 4 * raft::kMembersMax;

}  // namespace

std::vector<Places::Place>::iterator Places::at(raft::NodeId replica) {
  const auto found = std::lower_bound(
      places_.begin(), places_.end(), replica,
      [](const Place& place, raft::NodeId number) { return place.replica < number; });
  if (found != places_.end() && found->replica == replica) return found;
  const Place made{replica, {}, {}, false, turn_};
  if (places_.size() < kPlacesMax) return places_.insert(found, made);
  const auto rank = [this](const Place& place) {
    return std::pair(place.member && place.named == newest_, place.named);
  };
  places_.erase(std::min_element(
      places_.begin(), places_.end(),
      [&rank](const Place& one, const Place& other) { return rank(one) < rank(other); }));
  return at(replica);
}

void Places::learn(const raft::Membership& membership) {
  newest_ = ++turn_;
  for (const raft::Member& member : membership.members) {
    const auto place = at(member.id);
    place->directory = member.uuid;
    place->member = true;
    place->named = newest_;
  }
}

void Places::heard(raft::NodeId replica, const raft::Uuid& directory) {
  const auto place = at(replica);
  if (place->member || place->host != raft::kNobody) return;
  place->directory = directory;
  place->named = ++turn_;
}

void Places::assign(raft::NodeId replica, raft::NodeId host) {
  at(replica)->host = host;
}

const Places::Place* Places::find(raft::NodeId replica) const {
  const auto found = std::lower_bound(
      places_.begin(), places_.end(), replica,
      [](const Place& place, raft::NodeId number) { return place.replica < number; });
  return found != places_.end() && found->replica == replica ? &*found : nullptr;
}

raft::NodeId Places::host_of(raft::NodeId replica) const {
  const Place* const place = find(replica);
  if (place == nullptr) return raft::kNobody;
  return place->directory == raft::Uuid{} ? place->host : host_of_(place->directory);
}

raft::Uuid Places::directory_of(raft::NodeId replica) const {
  const Place* const place = find(replica);
  return place != nullptr && place->member ? place->directory : raft::Uuid{};
}

std::vector<raft::NodeId> Places::replicas_of(const raft::Uuid& directory) const {
  std::vector<raft::NodeId> found;
  for (const Place& place : places_) {
    if (place.directory == directory) found.push_back(place.replica);
  }
  return found;
}

}  // namespace leasehold::replica
