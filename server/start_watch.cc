#include <leasehold/server/front/replica_number.h>
#include <leasehold/server/start_watch.h>

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

using Clock = std::chrono::steady_clock;

/// Pause before the same sentence is logged again.
constexpr auto kSayAgain = std::chrono::seconds(10);
/// An election takes a moment: one that succeeds in this time is not logged.
constexpr auto kElectionPatience = std::chrono::seconds(3);

std::string member_text(const node::NodeStatus& status, raft::NodeId id) {
  std::string text = std::to_string(id.value());
  for (const node::MemberStatus& member : status.members) {
    if (member.id != id) continue;
    text +=
        fmt::format(" ({}{})", member.address, member.connected ? ", connected" : ", not reached");
  }
  return text;
}

/// "a", "a and b", "a, b and c".
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace

std::string waiting_text(const node::NodeStatus& status, bool many_groups) {
  const std::string problem = status.problem.empty() ? "" : ". The last refusal: " + status.problem;
  if (status.joining) {
    return fmt::format(
        "waiting to be added to the group; on any machine: leasehold member add "
        "{}={}{} --servers CLIENT-ADDRESSES-OF-MEMBERS{}",
        (many_groups ? node_of(status.id) : status.id).value(), status.address,
        status.witness ? " --witness" : "", problem);
  }
  if (!status.formed) {
    std::vector<std::string> missing;
    for (const raft::NodeId id : status.missing) {
      if (id != status.id) missing.push_back(member_text(status, id));
    }
    if (missing.empty()) return "";
    return fmt::format(
        "waiting for member{}{} to confirm the group; every member is started with the "
        "same --peers and --cluster{}",
        missing.size() == 1 ? " " : "s ", listed(missing), problem);
  }
  if (status.leader != raft::kNobody) return "";
  std::size_t voters = 0;
  std::size_t reached = 0;
  std::vector<std::string> away;
  for (const node::MemberStatus& member : status.members) {
    if (!member.voter) continue;
    ++voters;
    if (member.connected) {
      ++reached;
    } else {
      away.push_back(member_text(status, member.id));
    }
  }
  const std::size_t needed = voters / 2 + 1;
  if (reached >= needed) return "no leader yet: an election is under way" + problem;
  return fmt::format("no leader: {} of {} voters reached, {} are needed; start or connect {}{}",
                     reached, voters, needed, listed(away), problem);
}

struct StartWatch::Said {
  Say out;
  std::mutex mutex;
  std::string text;
  Clock::time_point at;

  /// On the node's thread, which also says that the group has formed: nothing of this is said later
  /// than it is so.
  void say(std::string fresh) {
    const auto now = Clock::now();
    const std::lock_guard lock(mutex);
    if (fresh.empty() || (fresh == text && now - at < kSayAgain)) return;
    out(fresh);
    text = std::move(fresh);
    at = now;
  }
  void forget() {
    const std::lock_guard lock(mutex);
    text.clear();
  }
};

StartWatch::StartWatch(node::Group& node, const std::atomic<bool>& leader_known, Say say,
                       bool many_groups)
    : node_(node),
      leader_known_(leader_known),
      many_groups_(many_groups),
      said_(std::make_shared<Said>()) {
  said_->out = std::move(say);
}
StartWatch::~StartWatch() = default;

void StartWatch::look() {
  const auto now = Clock::now();
  if (leader_known_.load(std::memory_order_relaxed)) {
    without_ = false;
    return said_->forget();
  }
  if (!std::exchange(without_, true)) without_since_ = now;
  const bool electing = now - without_since_ < kElectionPatience;
  node_.status([said = said_, electing, many = many_groups_](const node::NodeStatus& status) {
    if (status.formed && electing) return;
    said->say(waiting_text(status, many));
  });
}

}  // namespace leasehold::server
