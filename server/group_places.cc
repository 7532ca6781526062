// The file is text, so that a person can read it:
//
//   leasehold-places 1
//   4 1,2,5
//   7 2,3,5
#include <leasehold/server/front/words.h>
#include <leasehold/server/group_places.h>
#include <leasehold/server/small_file.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::server {
namespace {

SmallFile places_file(const std::string& data_dir) {
  return {data_dir + "/PLACES", "leasehold-places ",
          "remove it: the node learns where the groups are by leasehold pool status"};
}

std::string text_of_nodes(const GroupPlace::Nodes& nodes) {
  std::string text;
  for (const raft::NodeId node : nodes) {
    text += (text.empty() ? "" : ",") + std::to_string(node.value());
  }
  return text;
}

}  // namespace

GroupPlaces::GroupPlaces(std::string data_dir, raft::NodeId self, std::vector<Start> starts)
    : data_dir_(std::move(data_dir)), self_(self), starts_(std::move(starts)) {
  for (const Start& start : starts_) {
    Nodes others = start.nodes;
    std::erase(others, self_);
    places_.push_back(std::make_unique<GroupPlace>(start.here, std::move(others)));
  }
}

Result<std::unique_ptr<GroupPlaces>> GroupPlaces::load(const std::string& data_dir,
                                                       raft::NodeId self,
                                                       std::vector<Start> starts) {
  std::unique_ptr<GroupPlaces> places(new GroupPlaces(data_dir, self, std::move(starts)));
  const SmallFile file = places_file(data_dir);
  auto lines = load_lines(file);
  if (!lines) return lines.error();
  const std::string all = std::move(lines).value().value_or("");
  std::string_view rest = all;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (places->take_line(line)) continue;
    return Error{ErrorCode::corrupted, fmt::format("{}: '{}' does not say which nodes have a "
                                                   "group: {}",
                                                   file.path, line, file.remedy)};
  }
  return places;
}

bool GroupPlaces::take_line(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return false;
  const auto group = parse_integer(line.substr(0, space));
  auto nodes = parse_nodes(line.substr(space + 1));
  if (!group || *group < 2 || !nodes) return false;
  GroupPlace* const place = of(static_cast<std::size_t>(*group));
  if (place == nullptr) return false;
  static_cast<void>(place->set_nodes(*std::move(nodes)));
  return true;
}

GroupPlace* GroupPlaces::of(std::size_t group) {
  return group < 2 || group - 2 >= places_.size() ? nullptr : places_[group - 2].get();
}

void GroupPlaces::set(std::size_t group, Nodes nodes) {
  std::erase(nodes, self_);
  // Without another node it is the only member, which is nothing to know once it is none.
  if (nodes.empty()) return;
  if (!of(group)->set_nodes(std::move(nodes))) return;
  changed_.store(true);
  // At once: an old target may be a node that would send its clients back.
  const std::lock_guard lock(mutex_);
  aim(*of(group));
}

void GroupPlaces::learn(std::size_t group, Nodes nodes, bool among) {
  if (of(group) == nullptr || nodes.empty()) return;
  set(group, std::move(nodes));
  of(group)->set_here(among);
}

void GroupPlaces::leave(std::size_t group) {
  if (of(group) != nullptr) of(group)->set_here(false);
}

Result<void> GroupPlaces::hear(std::size_t group, const Nodes& nodes) {
  if (group < 1 || group > places_.size() + 1) {
    return Error{ErrorCode::invalid_argument, fmt::format("there is no group {}: expected a number "
                                                          "from 1 to {}",
                                                          group, places_.size() + 1)};
  }
  if (nodes.empty()) return Error{ErrorCode::invalid_argument, "a group is at one node at least"};
  GroupPlace* const place = of(group);
  // A replica that is a member knows better.
  if (place != nullptr && !place->here()) set(group, nodes);
  return {};
}

void GroupPlaces::aim(const std::set<raft::NodeId>& connected,
                      const std::map<raft::NodeId, std::string>& addresses) {
  const std::lock_guard lock(mutex_);
  connected_ = connected;
  addresses_ = addresses;
  for (const auto& place : places_) aim(*place);
}

/// The caller holds mutex_. Also of a group that is here: it may leave at any moment.
void GroupPlaces::aim(GroupPlace& place) const {
  raft::NodeId target = raft::kNobody;
  for (const raft::NodeId node : place.nodes()) {
    if (addresses_.count(node) == 0) continue;
    if (target == raft::kNobody) target = node;
    if (connected_.count(node) == 0) continue;
    target = node;
    break;
  }
  place.set_target(target);
}

Result<void> GroupPlaces::save() {
  if (!changed_.exchange(false)) return {};
  std::string lines;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Nodes born = starts_[i].nodes;
    std::erase(born, self_);
    const Nodes nodes = places_[i]->nodes();
    if (nodes == born || nodes.empty()) continue;
    lines += fmt::format("{} {}\n", i + 2, text_of_nodes(nodes));
  }
  auto saved = save_lines(places_file(data_dir_), lines);
  if (!saved) changed_.store(true);
  return saved;
}

}  // namespace leasehold::server
