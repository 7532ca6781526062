#include <leasehold/server/start_watch.h>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

using Clock = std::chrono::steady_clock;

/// The same sentence is said at most so often.
constexpr auto kSayAgain = std::chrono::seconds(10);
/// An election takes a moment: nothing is said of one that succeeds.
constexpr auto kElectionPatience = std::chrono::seconds(3);

std::string member_text(const node::NodeStatus& status, raft::NodeId id) {
  std::string text = std::to_string(id.value());
  for (const node::MemberStatus& member : status.members) {
    if (member.id != id) continue;
    text += " (" + member.address + (member.connected ? ", connected" : ", not reached") + ")";
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

std::string waiting_text(const node::NodeStatus& status) {
  const std::string problem = status.problem.empty() ? "" : ". The last refusal: " + status.problem;
  if (status.joining) {
    return "waiting to be added to the group; on any machine: leasehold member add " +
           std::to_string(status.id.value()) + "=" + status.address +
           (status.witness ? " --witness" : "") + " --servers CLIENT-ADDRESSES-OF-MEMBERS" +
           problem;
  }
  if (!status.formed) {
    std::vector<std::string> missing;
    for (const raft::NodeId id : status.missing) {
      if (id != status.id) missing.push_back(member_text(status, id));
    }
    if (missing.empty()) return "";
    return "waiting for member" + std::string(missing.size() == 1 ? " " : "s ") + listed(missing) +
           " to confirm the group; every member is started with the same --peers and --cluster" +
           problem;
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
  return "no leader: " + std::to_string(reached) + " of " + std::to_string(voters) +
         " voters reached, " + std::to_string(needed) + " are needed; start or connect " +
         listed(away) + problem;
}

struct StartWatch::Seen {
  std::mutex mutex;
  std::optional<node::NodeStatus> status;
};

StartWatch::StartWatch(node::Node& node, const std::atomic<bool>& leader_known)
    : node_(node), leader_known_(leader_known), seen_(std::make_shared<Seen>()) {}
StartWatch::~StartWatch() = default;

void StartWatch::look() {
  const auto now = Clock::now();
  std::optional<node::NodeStatus> status;
  {
    const std::lock_guard lock(seen_->mutex);
    status = std::exchange(seen_->status, std::nullopt);
  }
  if (leader_known_.load(std::memory_order_relaxed)) {
    without_ = false;
    said_.clear();
    return;
  }
  if (!std::exchange(without_, true)) without_since_ = now;
  node_.status([seen = seen_](node::NodeStatus fresh) {
    const std::lock_guard lock(seen->mutex);
    seen->status = std::move(fresh);
  });
  if (!status || (status->formed && now - without_since_ < kElectionPatience)) return;
  std::string text = waiting_text(*status);
  if (text.empty() || (text == said_ && now - said_at_ < kSayAgain)) return;
  spdlog::info("{}", text);
  said_ = std::move(text);
  said_at_ = now;
}

}  // namespace leasehold::server
