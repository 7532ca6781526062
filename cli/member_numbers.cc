#include <leasehold/cli/member_numbers.h>
#include <leasehold/cli/member_options.h>
#include <leasehold/raft/types.h>
#include <leasehold/server/front/replica_number.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace leasehold::cli {
namespace {

using Object = nlohmann::ordered_json;

bool has_many_groups(const Object& status) {
  return status.contains("groups");
}

/// Of a member, or of a server; null at one that did not answer.
raft::NodeId id_in(const Object& from) {
  const auto id = from.find("id");
  const bool known = id != from.end() && id->is_number_integer();
  return known ? raft::NodeId(id->get<std::uint64_t>()) : raft::kNobody;
}

/// It waits to be added; or it was removed and has not heard of it, so it has forgotten nothing.
bool may_be_added(const Object& status) {
  if (status.value("joining", false)) return true;
  const Object members = status.value("members", Object::array());
  return std::any_of(members.begin(), members.end(),
                     [&](const Object& member) { return id_in(member) == id_in(status); });
}

bool has_member(const Object& leader, const std::string& word) {
  const Object members = leader.value("members", Object::array());
  return std::any_of(members.begin(), members.end(), [&](const Object& member) {
    return std::to_string(id_in(member).value()) == id_of(word);
  });
}

}  // namespace

std::string in_group(const std::string& word, const Object& leader,
                     const std::vector<Object>& servers) {
  const auto number = server::parse_integer(id_of(word));
  if (!has_many_groups(leader) || !number || *number < 1) return word;
  const raft::NodeId node(static_cast<std::uint64_t>(*number));
  const std::string at = word.substr(id_of(word).size());
  std::optional<raft::NodeId> found;
  for (const Object& member : leader.value("members", Object::array())) {
    const raft::NodeId id = id_in(member);
    if (id == node) return word;
    if (server::node_of(id) == node) found = id;
  }
  for (const Object& one : servers) {
    if (found || at.empty()) break;
    if ("=" + one.value("peer_address", "") != at || !may_be_added(one)) continue;
    if (server::node_of(id_in(one)) == node) found = id_in(one);
  }
  return found ? std::to_string(found->value()) + at : word;
}

bool has_left(const std::string& word, const std::vector<Object>& servers) {
  const std::string at = word.substr(id_of(word).size());
  return std::any_of(servers.begin(), servers.end(), [&](const Object& one) {
    return "=" + one.value("peer_address", "") == at && one.value("formed", false) &&
           !may_be_added(one);
  });
}

std::string put_in_group(std::vector<std::string>& words, const Object& leader,
                         const std::vector<Object>& servers) {
  std::string left;
  for (std::string& word : words) {
    std::string fresh = in_group(word, leader, servers);
    if (fresh == word && has_left(word, servers) && !has_member(leader, word)) {
      left = fmt::format(
          "node {} was removed from this group, and has not been started again since: start it "
          "again, then it waits to be added",
          id_of(word));
    }
    word = std::move(fresh);
  }
  return left;
}

std::uint64_t node_number_of(const Object& server) {
  return node_number(id_in(server).value(), server);
}

std::uint64_t node_number(std::uint64_t member, const Object& leader) {
  return has_many_groups(leader) ? server::node_of(raft::NodeId(member)).value() : member;
}

}  // namespace leasehold::cli
