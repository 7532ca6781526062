#include <leasehold/replica/places.h>

#include <algorithm>
#include <cstddef>

namespace leasehold::replica {
namespace {

/// So many are kept before a membership has to name one.
constexpr std::size_t kHeardMax = 4 * raft::kMembersMax;

}  // namespace

std::vector<Places::Place>::iterator Places::at(raft::NodeId replica) {
  const auto found = std::lower_bound(
      places_.begin(), places_.end(), replica,
      [](const Place& place, raft::NodeId number) { return place.replica < number; });
  if (found != places_.end() && found->replica == replica) return found;
  return places_.insert(found, {replica, {}, {}, false});
}

void Places::learn(const raft::Membership& membership) {
  for (const raft::Member& member : membership.members) {
    const auto place = at(member.id);
    place->directory = member.uuid;
    place->member = true;
  }
}

void Places::heard(raft::NodeId replica, const raft::Uuid& directory) {
  // Any host of the pool may send any number.
  if (places_.size() >= kHeardMax && find(replica) == nullptr) return;
  const auto place = at(replica);
  if (!place->member && place->host == raft::kNobody) place->directory = directory;
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
