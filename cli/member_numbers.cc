#include <leasehold/cli/member_numbers.h>
#include <leasehold/cli/member_options.h>
#include <leasehold/raft/types.h>
#include <leasehold/server/front/replica_number.h>
#include <leasehold/server/front/words.h>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>

namespace leasehold::cli {
namespace {

using Object = nlohmann::ordered_json;

bool has_many_groups(const Object& status) {
  return status.contains("groups");
}

raft::NodeId number_in(const Object& from) {
  return raft::NodeId(from.value("id", std::uint64_t{0}));
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
    const raft::NodeId id = number_in(member);
    if (id == node) return word;
    if (server::node_of(id) == node) found = id;
  }
  for (const Object& one : servers) {
    if (found || at.empty()) break;
    const bool waits = one.value("joining", false) && "=" + one.value("peer_address", "") == at;
    if (waits && server::node_of(number_in(one)) == node) found = number_in(one);
  }
  return found ? std::to_string(found->value()) + at : word;
}

std::uint64_t node_number(std::uint64_t member, const Object& leader) {
  return has_many_groups(leader) ? server::node_of(raft::NodeId(member)).value() : member;
}

}  // namespace leasehold::cli
