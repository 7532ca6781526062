#include <leasehold/sim/plan/member_changes.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace leasehold::sim {
namespace {

enum class Seat : std::uint8_t { none, learner, voter };

Seat seat_of(const raft::Membership& membership, raft::NodeId id) {
  const std::vector<raft::NodeId>& voters = membership.voters;
  if (std::binary_search(voters.begin(), voters.end(), id)) return Seat::voter;
  return membership.find(id) != nullptr ? Seat::learner : Seat::none;
}

}  // namespace

MemberChanges::MemberChanges(World& world, std::vector<SimNode*> nodes)
    : world_(world), nodes_(std::move(nodes)), random_(world.random(11)) {}

void MemberChanges::start() {
  if (world_.plan.enabled.has(FaultClass::membership)) schedule_next();
}

void MemberChanges::schedule_next() {
  const Duration mean = world_.plan.member_change_interval;
  world_.queue.after(draw_duration(random_, mean / 4, mean * 7 / 4), [this] {
    if (world_.healed) return;
    if (world_.fault_happens() && world_.all_quiet_left() == Duration{0}) change();
    world_.begin_sequence(random_, FaultMoment::after);
    schedule_next();
  });
}

void MemberChanges::change() {
  const std::uint64_t drawn = random_.next();
  SimNode* const leader = some_leader(nodes_, drawn);
  if (leader == nullptr) return;
  SimNode& node = *leader;
  replica::ChangeMembers event;
  event.wanted = draw_wanted(node.running().membership());
  event.deadline = node.clock().now().promise + std::chrono::seconds(30);
  node.post(std::move(event));
  world_.used(FaultClass::membership);
}

raft::WantedMembers MemberChanges::draw_wanted(const raft::Membership& newest) {
  std::vector<Seat> seats;
  for (const SimNode* node : nodes_) seats.push_back(seat_of(newest, node->id()));
  const std::uint64_t moves = 1 + random_.below(3);
  for (std::uint64_t i = 0; i < moves; ++i) {
    Seat& seat = seats[static_cast<std::size_t>(random_.below(seats.size()))];
    const std::uint64_t what = random_.below(4);
    switch (seat) {
      case Seat::none: seat = Seat::learner; break;
      case Seat::learner: seat = what == 0 ? Seat::none : Seat::voter; break;
      case Seat::voter: seat = what < 2 ? Seat::none : Seat::learner; break;
    }
  }
  // Fewer than three voters are rare: they cannot go on when one is away.
  const auto voters = std::count(seats.begin(), seats.end(), Seat::voter);
  const bool lonely = random_.chance(1, 10);
  const std::uint64_t kept = random_.below(seats.size());
  for (std::size_t i = 0; voters < 3 && !lonely && i < seats.size(); ++i) {
    const std::size_t at = static_cast<std::size_t>(kept + i) % seats.size();
    if (seat_of(newest, nodes_[at]->id()) == Seat::voter) seats[at] = Seat::voter;
  }
  const bool moved = random_.chance(1, 10);
  raft::WantedMembers wanted;
  for (std::size_t i = 0; i < seats.size(); ++i) {
    if (seats[i] == Seat::none) continue;
    const raft::NodeId id = nodes_[i]->id();
    const raft::Member* known = newest.find(id);
    std::string address = fmt::format("node-{}{}", id.value(), moved && i == kept ? ":2" : ":1");
    if (known != nullptr && !(moved && i == kept)) address = known->address;
    const raft::Suffrage suffrage =
        seats[i] == Seat::voter ? raft::Suffrage::voter : raft::Suffrage::learner;
    wanted.push_back({id, uuid_of(id), std::move(address), suffrage, nodes_[i]->witness()});
  }
  return wanted;
}

}  // namespace leasehold::sim
