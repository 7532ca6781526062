#include <leasehold/kv/slot_layout.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>

namespace leasehold::kv {
namespace {

/// What all states say of one slot. Groups are counted from 1 on.
struct Told {
  std::uint32_t slot = 0;
  std::vector<std::size_t> served;  ///< by these groups
  std::vector<std::size_t> frozen;
  std::vector<std::uint64_t> epochs;   ///< of each group; 0: it says nothing
  std::vector<std::size_t> expecting;  ///< groups to which it is coming
};

Told gather(std::uint32_t slot, const std::vector<SlotsOfState>& groups) {
  Told told{slot, {}, {}, std::vector<std::uint64_t>(groups.size()), {}};
  const std::size_t first = first_group_of(slot, static_cast<std::uint32_t>(groups.size())) + 1;
  for (std::size_t group = 1; group <= groups.size(); ++group) {
    const SlotMap& slots = groups[group - 1].slots;
    const auto at = slots.find(slot);
    if (at == slots.end()) {
      if (group == first) told.served.push_back(group);
      continue;
    }
    const SlotRecord& record = at->second;
    if (record.phase == SlotPhase::arriving) {
      told.expecting.push_back(group);
      continue;
    }
    told.epochs[group - 1] = record.epoch;
    if (serves(&record)) told.served.push_back(group);
    if (record.phase == SlotPhase::frozen) told.frozen.push_back(group);
  }
  return told;
}

std::string older(std::uint32_t slot, std::size_t group, std::size_t than) {
  return fmt::format("of slot {} group {} knows less than group {}: its state is older", slot,
                     group, than);
}

/// Of a slot that comes to `group`, and whose owner is `owner`.
std::optional<std::string> arrival_problem(const std::vector<SlotsOfState>& groups,
                                           const Told& told, std::size_t group, std::size_t owner) {
  const SlotRecord& record = groups[group - 1].slots.at(told.slot);
  const std::uint64_t epoch = told.epochs[owner - 1];
  const bool next = record.epoch == epoch + 1 && record.other == owner;
  if ((record.epoch > epoch && !next) || record.other > groups.size()) {
    return older(told.slot, owner, group);
  }
  if (record.move > groups[record.other - 1].revision) {
    return older(told.slot, record.other, group);
  }
  return std::nullopt;
}

std::optional<std::string> problem_of(const Told& told, const std::vector<SlotsOfState>& groups) {
  const auto newest = std::max_element(told.epochs.begin(), told.epochs.end());
  const auto is_newest = [&](std::size_t group) { return told.epochs[group - 1] == *newest; };
  std::vector<std::size_t> owners = told.served;
  // One that is frozen with a smaller number has been taken since.
  std::copy_if(told.frozen.begin(), told.frozen.end(), std::back_inserter(owners), is_newest);
  if (owners.empty()) return fmt::format("slot {} has no owner", told.slot);
  if (owners.size() > 1) {
    return fmt::format("slot {} has two owners, groups {} and {}", told.slot, owners[0], owners[1]);
  }
  const std::size_t owner = owners.front();
  if (!is_newest(owner)) {
    return older(told.slot, owner, static_cast<std::size_t>(newest - told.epochs.begin()) + 1);
  }
  for (const std::size_t group : told.expecting) {
    if (auto problem = arrival_problem(groups, told, group, owner)) return problem;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> moving_slot(const SlotMap& slots) {
  for (const auto& [slot, record] : slots) {
    if (record.phase == SlotPhase::copying || record.phase == SlotPhase::frozen) {
      return fmt::format("slot {} is moving to group {}", slot, record.other);
    }
    if (record.phase == SlotPhase::arriving && record.keys > 0) {
      return fmt::format("slot {} is moving here from group {}", slot, record.other);
    }
  }
  return std::nullopt;
}

std::optional<std::string> layout_problem(const std::vector<SlotsOfState>& groups) {
  // Without a record anywhere a slot is where the number of the groups puts it.
  std::set<std::uint32_t> moved;
  for (const SlotsOfState& group : groups) {
    for (const auto& [slot, record] : group.slots) moved.insert(slot);
  }
  for (const std::uint32_t slot : moved) {
    if (auto problem = problem_of(gather(slot, groups), groups)) return problem;
  }
  return std::nullopt;
}

}  // namespace leasehold::kv
