// The file is text, so that a person can read it:
//
//   leasehold-replicas 1
//   4 3 removed
//   7 10003
#include <leasehold/server/front/replica_number.h>
#include <leasehold/server/front/words.h>
#include <leasehold/server/own_replicas.h>
#include <leasehold/server/small_file.h>
#include <leasehold/storage/private_folder.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace leasehold::server {
namespace {

SmallFile replicas_file(const std::string& data_dir) {
  return {data_dir + "/REPLICAS", "leasehold-replicas ",
          "remove this node from all groups, and add it again with another number and an empty "
          "directory"};
}

/// Cuts the text up to `end` off; the whole text if that is not there.
std::string_view cut_off(std::string_view& text, char end) {
  const std::string_view word = text.substr(0, text.find(end));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  return word;
}

constexpr std::string_view kRemovedWord = "removed";
constexpr std::string_view kWaitsWord = "waits";

}  // namespace

Result<void> remove_replica_files(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code failed;
  std::vector<std::string> names;
  for (auto at = fs::directory_iterator(folder, failed); !failed && at != fs::end(at);
       at.increment(failed)) {
    names.push_back(at->path().filename().string());
  }
  if (failed == std::errc::no_such_file_or_directory) return {};
  std::erase(names, "backups");
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name != "RESTORED"; });
  for (const std::string& name : names) {
    if (name == "RESTORED") {
      if (auto synced = storage::sync_folder(folder); !synced) return synced;
    }
    if (!failed) fs::remove_all(folder + "/" + name, failed);
  }
  if (!failed) return {};
  return Error{ErrorCode::io, fmt::format("cannot remove {}: {}", folder, failed.message())};
}

Result<OwnReplicas> OwnReplicas::load(const std::string& data_dir, raft::NodeId self,
                                      std::size_t groups) {
  OwnReplicas own(data_dir, self, groups);
  auto lines = load_lines(replicas_file(data_dir));
  if (!lines) return lines.error();
  if (auto taken = own.take(lines.value().value_or("")); !taken) return taken.error();
  return own;
}

Result<void> OwnReplicas::take(std::string_view lines) {
  while (!lines.empty()) {
    const std::string_view line = cut_off(lines, '\n');
    if (take_line(line)) continue;
    const SmallFile file = replicas_file(data_dir_);
    return Error{ErrorCode::corrupted, fmt::format("{}: the line '{}' is of no replica of node {}: "
                                                   "mend it, or {}",
                                                   file.path, line, self_.value(), file.remedy)};
  }
  return {};
}

bool OwnReplicas::take_line(std::string_view line) {
  const auto group = parse_integer(cut_off(line, ' '));
  const auto number = parse_integer(cut_off(line, ' '));
  if (!group || *group < 1 || !number || *number < 1) return false;
  const raft::NodeId replica(static_cast<std::uint64_t>(*number));
  const auto at = static_cast<std::size_t>(*group);
  if (at > groups_ || node_of(replica) != self_) return false;
  State state = State::member;
  if (line == kRemovedWord) {
    state = State::removed;
  } else if (line == kWaitsWord) {
    state = State::waits;
  } else if (!line.empty()) {
    return false;
  }
  return replicas_.try_emplace(at, Replica{replica, state}).second;
}

raft::NodeId OwnReplicas::of(std::size_t group) const {
  const auto found = replicas_.find(group);
  return found == replicas_.end() ? self_ : found->second.number;
}

std::vector<std::size_t> OwnReplicas::in(State state) const {
  std::vector<std::size_t> groups;
  for (const auto& [group, replica] : replicas_) {
    if (replica.state == state) groups.push_back(group);
  }
  return groups;
}

std::vector<std::size_t> OwnReplicas::just_added(
    const std::vector<std::pair<std::size_t, raft::NodeId>>& replicas) const {
  std::vector<std::size_t> added;
  for (const auto& [group, number] : replicas) {
    const auto own = replicas_.find(group);
    const bool waits = own != replicas_.end() && own->second.state == State::waits;
    if (waits && own->second.number == number) added.push_back(group);
  }
  return added;
}

bool OwnReplicas::returned(std::size_t group, raft::NodeId replica) const {
  const auto own = replicas_.find(group);
  return own != replicas_.end() && own->second.state == State::removed &&
         own->second.number == replica;
}

Result<void> OwnReplicas::note_removed(const std::vector<std::size_t>& groups) {
  std::map<std::size_t, Replica> changed = replicas_;
  for (const std::size_t group : groups) changed[group] = {of(group), State::removed};
  return save(std::move(changed));
}

Result<void> OwnReplicas::note_added(const std::vector<std::size_t>& groups) {
  std::map<std::size_t, Replica> changed = replicas_;
  for (const std::size_t group : groups) changed[group] = {of(group), State::member};
  return save(std::move(changed));
}

std::vector<std::size_t> OwnReplicas::replaceable() const {
  std::vector<std::size_t> groups = in(State::removed);
  const bool left_all = groups.size() + waiting().size() == groups_;
  if (!groups.empty() && groups.front() == 1 && !left_all) groups.erase(groups.begin());
  return groups;
}

Result<void> OwnReplicas::replace(std::size_t group) {
  std::map<std::size_t, Replica> changed = replicas_;
  changed[group] = {replica_after(of(group)), State::waits};
  return save(std::move(changed));
}

Result<void> OwnReplicas::save(std::map<std::size_t, Replica> changed) {
  std::string lines;
  for (const auto& [group, replica] : changed) {
    lines += fmt::format("{} {}", group, replica.number.value());
    if (replica.state == State::removed) lines.append(" ").append(kRemovedWord);
    if (replica.state == State::waits) lines.append(" ").append(kWaitsWord);
    lines += '\n';
  }
  if (auto saved = save_lines(replicas_file(data_dir_), lines); !saved) return saved;
  replicas_ = std::move(changed);
  return {};
}

}  // namespace leasehold::server
