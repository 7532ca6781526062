// The members of a group, as one of its nodes says.
#pragma once

#include <leasehold/cli/leader.h>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::cli {

/// By the numbers of members, as text.
struct MemberView : Leader {
  const nlohmann::ordered_json* member(const std::string& id) const {
    for (const nlohmann::ordered_json& one : status.at("members")) {
      if (one.at("id").dump() == id) return &one;
    }
    return nullptr;
  }
  /// No change is half made, or may be taken back.
  bool settled() const {
    const nlohmann::ordered_json& place = status.at("membership");
    return place.at("committed").get<bool>() && !place.at("joint").get<bool>();
  }
  bool is_member(const std::string& id) const { return member(id) != nullptr; }
  bool is_voter(const std::string& id) const {
    return is_member(id) && member(id)->at("voter").get<bool>();
  }
  std::uint64_t behind(const std::string& id) const {
    const auto last = status.at("last").get<std::uint64_t>();
    const auto match = is_member(id) ? member(id)->at("match").get<std::uint64_t>() : 0;
    return last > match ? last - match : 0;
  }
};

/// "12,000".
std::string grouped(std::uint64_t number);
/// "learner 4: 12,000 entries behind" of each of `ids`.
std::string progress_of(const MemberView& view, const std::vector<std::string>& ids);

}  // namespace leasehold::cli
