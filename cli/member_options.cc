#include <leasehold/cli/member_options.h>
#include <leasehold/cli/nearest_word.h>
#include <leasehold/server/settings.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace leasehold::cli {

bool fits_action(const MemberOptions& options, std::string& wrong) {
  const std::string& action = options.action;
  static const std::vector<std::string> kActions = {"list",   "add",     "promote", "demote",
                                                    "remove", "replace", "move"};
  if (std::find(kActions.begin(), kActions.end(), action) == kActions.end()) {
    wrong = action.empty()
                ? "the action is missing"
                : fmt::format("unknown action '{}'{}", action, did_you_mean(action, kActions));
    return false;
  }
  if (action == "list") {
    if (!options.words.empty()) wrong = "list takes no members";
    return wrong.empty();
  }
  if (options.words.empty() || (action == "replace" && options.words.size() % 2 != 0)) {
    wrong =
        fmt::format("{}: {}", action,
                    action == "replace" ? "name pairs of OLD and NEW=HOST:PORT" : "name a member");
    return false;
  }
  std::set<raft::NodeId> named;
  for (std::size_t i = 0; i < options.words.size(); ++i) {
    const bool placed = action == "add" || action == "move" || (action == "replace" && i % 2 == 1);
    // The rules of --peers; a number alone gets an address to pass them.
    const std::string& word = options.words[i];
    const auto peer = server::parse_peers(placed ? word : word + "=host:1");
    const bool fits =
        peer && peer.value().size() == 1 && placed == (word.find('=') != std::string::npos);
    if (fits && named.insert(peer.value().front().id).second) continue;
    if (fits) {
      wrong = fmt::format("node {} is named twice", id_of(word));
      // To exchange a member's directory under its number takes two changes: the group would
      // otherwise have to trust a directory that may have forgotten what it promised.
      wrong += action == "replace"
                   ? ": NEW needs a number of its own. To give a member an empty directory under "
                     "the same number: leasehold member remove, then leasehold member add"
                   : ": name each node once";
      return false;
    }
    wrong = fmt::format(
        "'{}': write {}", word,
        placed ? "a member as ID=HOST:PORT, as in 4=10.0.0.4:7101" : "the number of a member");
    return false;
  }
  return true;
}

}  // namespace leasehold::cli
