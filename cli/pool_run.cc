#include <leasehold/cli/access.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/pool_run.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <set>
#include <thread>
#include <utility>

namespace leasehold::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Timeout = client::RespClient::Timeout;

/// Between two looks at the pool when there is nothing to do.
constexpr auto kPoolPause = std::chrono::milliseconds(200);
/// Pause between two reports of what is waited for.
constexpr auto kPoolTellPause = std::chrono::seconds(2);
/// For the answer of a leader that has begun: above its --command-timeout, as a rule.
constexpr Timeout kPoolStepTimeout{20'000};
/// Voters of the first group: more would make each change of the users slower, and no safer.
constexpr std::size_t kHomeVotersMax = 5;

std::string number_text(raft::NodeId number) {
  return std::to_string(number.value());
}

/// A change of the members that the view has. Another run may have changed them since, and two
/// steps that each keep a quorum may keep none together.
std::vector<std::string> change_of(const PoolGroup& group, const char* verb,
                                   const std::string& what) {
  std::vector<std::string> words = {"LEASEHOLD", "MEMBER"};
  if (!group.membership.empty()) words.insert(words.end(), {"EXPECT", group.membership});
  words.insert(words.end(), {verb, what});
  return words;
}

/// None: the node cannot be added now.
std::optional<PoolStep> adding(const PoolView& view, raft::GroupId group, raft::NodeId node) {
  const PoolSeat* const seat = view.seat(node, group);
  if (seat == nullptr || !seat->addable) return std::nullopt;
  PoolStep step;
  step.group = group;
  step.added = node;
  step.command =
      change_of(view.groups.at(group), "ADD",
                fmt::format("{}={}", seat->replica.value(), view.nodes.at(node).peer_address));
  return step;
}

/// The first group is at every node, and those of its members vote that came first.
void add_home_steps(const PoolView& view, const PoolOptions& options, NextSteps& next) {
  const PoolGroup& home = view.home();
  if (home.leader_server.empty() || !home.settled) return;
  const PoolMember* const leads = home.member(home.leader);
  for (const PoolMember& member : home.members) {
    const bool goes = options.wishes.draining.count(member.node) > 0;
    const bool reached = view.nodes.count(member.node) > 0;
    if (leads != nullptr && options.wishes.draining.count(leads->node) > 0 && !goes && reached &&
        member.voter) {
      next.steps.push_back(
          {home.id,
           {"LEASEHOLD", "TRANSFER", number_text(member.replica)},
           fmt::format("group 1: transfer the leadership to node {} (drain)", member.node.value()),
           raft::kNobody});
      return;
    }
    if (member.voter || goes || !reached || home.voters() >= kHomeVotersMax) continue;
    if (view.is_deleted(member, home.id)) continue;
    next.steps.push_back({home.id, change_of(home, "PROMOTE", number_text(member.replica)),
                          fmt::format("group 1: promote node {}", member.node.value()),
                          raft::kNobody});
    return;
  }
  for (const auto& [number, node] : view.nodes) {
    if (home.at(number) != nullptr) continue;
    auto step = adding(view, home.id, number);
    if (!step) continue;
    step->text = fmt::format("group 1: add node {}", number.value());
    next.steps.push_back(*std::move(step));
    return;
  }
}

/// None: the node that gets a replica cannot have one yet.
std::optional<PoolStep> made_of(const placement::Step& planned, const PoolView& view) {
  using What = placement::Step::What;
  PoolStep step;
  step.group = planned.group;
  step.instead_of = planned.instead_of;
  const PoolGroup& group = view.groups.at(planned.group);
  const std::string number = number_text(planned.replica);
  switch (planned.what) {
    case What::add_learner: {
      auto added = adding(view, planned.group, planned.host);
      if (!added) return std::nullopt;
      added->instead_of = planned.instead_of;
      step = *std::move(added);
      break;
    }
    case What::promote: step.command = change_of(group, "PROMOTE", number); break;
    case What::remove: step.command = change_of(group, "REMOVE", number); break;
    case What::transfer: step.command = {"LEASEHOLD", "TRANSFER", number}; break;
  }
  step.text = sentence_of(planned);
  return step;
}

/// Learners that their nodes have deleted: such a one would never catch up.
void add_removals(const PoolView& view, NextSteps& next) {
  for (const auto& [id, group] : view.groups) {
    if (group.leader_server.empty() || !group.settled) continue;
    for (const PoolMember& member : group.members) {
      if (member.voter || !view.is_deleted(member, id)) continue;
      next.steps.push_back(
          {id, change_of(group, "REMOVE", number_text(member.replica)),
           fmt::format("group {}: remove replica {}, which node {} has deleted (finish)",
                       id.value(), member.replica.value(), member.node.value()),
           raft::kNobody});
      break;
    }
  }
}

/// The pool waits for strays that may hear of their removal, and names those that do not.
void note_strays(const PoolView& view, NextSteps& next) {
  for (const auto& [number, node] : view.nodes) {
    for (const auto& [id, seat] : node.seats) {
      if (!view.is_stray(number, id)) continue;
      if (!seat.addable) {
        next.waits = true;
        continue;
      }
      next.reasons.push_back(
          fmt::format("group {}: replica {} at node {} was removed and does not hear of it: "
                      "leasehold member add {}={} --group {}, then remove it again",
                      id.value(), seat.replica.value(), number.value(), seat.replica.value(),
                      node.peer_address, id.value()));
    }
  }
}

/// A change of members, a learner that is to vote, or an election. Learners of the first group may
/// stay so.
bool is_under_way(const PoolView& view) {
  return std::any_of(view.groups.begin(), view.groups.end(), [&view](const auto& one) {
    const PoolGroup& group = one.second;
    const bool learns = group.id != view.home().id && group.voters() < group.members.size();
    return learns || !group.settled || group.leader_server.empty();
  });
}

class Balance {
 public:
  explicit Balance(const PoolOptions& options) : options_(options) {}

  int run() {
    for (auto told = Clock::now();;) {
      auto view = look_at_pool(options_.servers, options_.look);
      if (!view && view.error().code == ErrorCode::invalid_argument) return give_up(view.error());
      bool worked = false;
      if (view) {
        strays_.note(view.value(), Clock::now());
        tell_places(view.value(), options_.look);
        auto next = plan_of(view.value(), options_, leaving_);
        if (!next) return give_up(next.error());
        if (next.value().steps.empty() && !next.value().waits)
          return finish(view.value(), next.value());
        worked = make_all(next.value(), view.value());
        note_progress(worked, view.value());
      } else {
        why_ = view.error().message;
      }
      const auto now = Clock::now();
      if (now > moved_at_ + options_.patience) {
        return fail("pool",
                    fmt::format("nothing has moved for {} s: {}",
                                std::chrono::ceil<std::chrono::seconds>(options_.patience).count(),
                                why_.empty() ? "a replica does not catch up" : why_),
                    kNotExecuted);
      }
      if (worked) continue;
      if (now > told + kPoolTellPause) {
        told = now;
        if (!why_.empty()) std::cerr << why_ << std::endl;
      }
      std::this_thread::sleep_for(kPoolPause);
    }
  }

 private:
  static int give_up(const Error& error) { return fail("pool", error.message, kNotExecuted); }

  /// Whether any of them was made.
  bool make_all(const NextSteps& next, const PoolView& view) {
    bool any = false;
    why_.clear();
    for (const PoolStep& step : next.steps) any = make(step, view) || any;
    if (why_.empty() && next.waits) why_ = waiting_text(view);
    return any;
  }

  bool make(const PoolStep& step, const PoolView& view) {
    const std::string& server = view.groups.at(step.group).leader_server;
    if (step.added != raft::kNobody) introduce(step.added, view);
    auto client = client::RespClient::connect(
        server, options_.look, access().in_group(static_cast<std::size_t>(step.group.value())));
    const auto reply = client ? client.value().call(step.command, kPoolStepTimeout)
                              : Result<client::RespValue>(client.error());
    using Kind = client::RespValue::Kind;
    if (reply && (reply.value().kind == Kind::simple || reply.value().kind == Kind::bulk)) {
      std::cout << step.text << std::endl;
      if (step.added != raft::kNobody) leaving_[step.group] = step.instead_of;
      return true;
    }
    // The next look shows whether it was made all the same.
    why_ = fmt::format("{}: not yet: {}: {}", step.text, server,
                       reply ? reply.value().text : reply.error().message);
    return false;
  }

  /// All nodes know a node that gets a replica.
  void introduce(raft::NodeId added, const PoolView& view) {
    if (!introduced_.insert(added).second) return;
    const std::string word = fmt::format("{}={}", added.value(), view.nodes.at(added).peer_address);
    for (const auto& [number, node] : view.nodes) {
      if (number == added) continue;
      auto client = client::RespClient::connect(node.server, options_.look, access());
      const auto reply =
          client ? client.value().call({"LEASEHOLD", "HOST", "ADD", word}, options_.look)
                 : Result<client::RespValue>(client.error());
      if (reply && reply.value().kind == client::RespValue::Kind::simple) continue;
      introduced_.erase(added);
      std::cerr << fmt::format("leasehold pool: {} does not know {} now: {}", node.server, word,
                               reply ? reply.value().text : reply.error().message)
                << std::endl;
    }
  }

  void note_progress(bool worked, const PoolView& view) {
    const std::uint64_t behind = view.behind();
    if (worked || behind < behind_) moved_at_ = Clock::now();
    behind_ = behind;
  }

  static std::string waiting_text(const PoolView& view) {
    for (const auto& [id, group] : view.groups) {
      if (group.leader_server.empty()) {
        return fmt::format("group {} has no leader among the servers", id.value());
      }
      for (const PoolMember& member : group.members) {
        if (member.voter || member.behind == 0) continue;
        return fmt::format("group {}: node {} lacks {} entries", id.value(), member.node.value(),
                           member.behind);
      }
    }
    return "a change of members is under way";
  }

  int finish(const PoolView& view, const NextSteps& next) const {
    for (const std::string& reason : next.reasons) std::cerr << reason << "\n";
    std::size_t left = 0;
    for (const auto& [id, group] : view.groups) {
      if (id != view.home().id && group.at(options_.drained) != nullptr) ++left;
    }
    if (options_.drained != raft::kNobody && left > 0) {
      return fail(
          "pool",
          fmt::format("node {} keeps replicas of {} groups", options_.drained.value(), left),
          kNotExecuted);
    }
    const PoolMember* const leads = view.home().member(view.home().leader);
    if (options_.drained != raft::kNobody && leads != nullptr && leads->node == options_.drained) {
      return fail(
          "pool",
          fmt::format("node {} leads group 1, and no other voter of it is among the servers",
                      options_.drained.value()),
          kNotExecuted);
    }
    if (options_.drained != raft::kNobody) {
      std::cout << fmt::format("node {} is empty: it keeps a replica of group 1 only",
                               options_.drained.value())
                << std::endl;
    } else {
      std::cout << "the pool is as it should be" << std::endl;
    }
    return next.reasons.empty() ? 0 : kNotExecuted;
  }

  const PoolOptions& options_;
  std::map<raft::GroupId, raft::NodeId> leaving_;
  Strays strays_;
  std::set<raft::NodeId> introduced_;
  Clock::time_point moved_at_ = Clock::now();
  std::uint64_t behind_ = 0;
  std::string why_;  ///< nothing was done
};

}  // namespace

Result<NextSteps> plan_of(const PoolView& view, const PoolOptions& options,
                          const std::map<raft::GroupId, raft::NodeId>& leaving) {
  PoolWishes wishes = options.wishes;
  if (wishes.replicas == 0) wishes.replicas = view.replicas;
  if (wishes.replicas == 0) {
    return Error{ErrorCode::invalid_argument,
                 "how many replicas a group is to have is not known: give --replicas N, here or to "
                 "all nodes"};
  }
  if (options.drained != raft::kNobody && view.nodes.count(options.drained) == 0) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("node {} is not among the servers: name all nodes in --servers",
                             options.drained.value())};
  }
  placement::Limits limits;
  limits.moves_per_host = options.moves;
  const auto plan = placement::next_steps(pool_of(view, wishes, leaving), limits);
  if (!plan) return plan.error();
  NextSteps next;
  next.reasons = plan.value().reasons;
  add_home_steps(view, options, next);
  add_removals(view, next);
  note_strays(view, next);
  for (const placement::Step& planned : plan.value().steps) {
    if (auto step = made_of(planned, view)) {
      next.steps.push_back(*std::move(step));
    } else {
      next.waits = true;
    }
  }
  next.waits = next.waits || is_under_way(view);
  return next;
}

void tell_places(const PoolView& view, Timeout timeout) {
  for (const auto& [number, node] : view.nodes) {
    std::vector<std::vector<std::string>> news;
    for (const auto& [id, seat] : node.seats) {
      const PoolGroup& group = view.groups.at(id);
      if (id == view.home().id || seat.here || group.leader_server.empty()) continue;
      std::vector<raft::NodeId> nodes = group.nodes();
      std::erase(nodes, number);
      if (nodes.empty() || nodes == seat.nodes || !group.settled) continue;
      std::string text;
      for (const raft::NodeId one : nodes) text += (text.empty() ? "" : ",") + number_text(one);
      news.push_back({"LEASEHOLD", "POOL", "PLACE", std::to_string(id.value()), text});
    }
    if (news.empty()) continue;
    auto client = client::RespClient::connect(node.server, timeout, access());
    // It finds the way by the other nodes, or hears it the next time.
    for (const auto& words : news) {
      if (!client || !client.value().call(words, timeout)) break;
    }
  }
}

int balance_pool(const PoolOptions& options) {
  return Balance(options).run();
}

}  // namespace leasehold::cli
