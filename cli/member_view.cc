#include <leasehold/cli/member_view.h>

#include <fmt/format.h>

#include <cstddef>
#include <optional>

namespace leasehold::cli {
std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string progress_of(const MemberView& view, const std::vector<std::string>& ids) {
  std::string text;
  for (const std::string& id : ids) {
    if (!text.empty()) text += ", ";
    text += fmt::format("learner {}: ", id);
    const nlohmann::ordered_json* member = view.member(id);
    std::optional<std::uint64_t> percent;
    for (const nlohmann::ordered_json& snapshot :
         view.status.value("snapshots", nlohmann::ordered_json::array())) {
      const bool its = snapshot.at("sending").get<bool>() && snapshot.at("peer").dump() == id;
      if (its) percent = snapshot.at("percent").get<std::uint64_t>();
    }
    if (member == nullptr) {
      text += "no member any more";
    } else if (!member->at("connected").get<bool>()) {
      text += "not reached at " + member->at("address").get<std::string>();
    } else if (percent) {
      text += fmt::format("{} % of a snapshot", *percent);
    } else {
      text += grouped(view.behind(id)) + " entries behind";
    }
  }
  return text;
}

}  // namespace leasehold::cli
