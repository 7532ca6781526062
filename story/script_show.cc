// The commands `show` and `expect`.

#include <leasehold/story/script.h>

#include <fmt/format.h>

#include <utility>

namespace leasehold::story {
namespace {

std::string join_from(const Script::Words& words, std::size_t from) {
  std::string text;
  for (std::size_t i = from; i < words.size(); ++i) text += (i == from ? "" : " ") + words[i];
  return text;
}

std::string vote_of(const raft::HardState& state, GroupId group) {
  if (state.voted_for == raft::kNobody) return "none";
  return fmt::format("{}{}", short_name(state.voted_for, group),
                     state.vote_committed ? " committed" : " uncommitted");
}

}  // namespace

std::string Script::state_of(Replica id) const {
  const StoryNode& node = cluster_->node(id.node);
  if (!node.up) return "down";
  const raft::Core& core = *node.of(id.group).core;
  const std::string text =
      raft::Term() == core.term() && core.role() == raft::Role::follower
          ? "follower, no term yet"
          : fmt::format("{}, term {}", role_name(core.role()), core.term().value());
  return fmt::format("{}, vote {}, commit {}{}", text, vote_of(core.hard_state(), id.group),
                     core.commit_index().value(), node.paused ? ", paused" : "");
}

std::string Script::log_of(Replica id) const {
  const StoryReplica& replica = cluster_->replica(id);
  const bool up = cluster_->node(id.node).up;
  const std::uint64_t commit = up ? replica.core->commit_index().value() : 0;
  if (replica.log.empty()) return "empty";
  std::string text;
  for (const raft::Entry& entry : replica.log) {
    if (!text.empty()) text += " ";
    text += std::to_string(entry.id.term.value());
    if (entry.kind == raft::EntryKind::empty) text += ":-";
    if (!entry.payload.view().empty()) text += fmt::format(":{}", entry.payload.view());
    if (entry.id.index.value() == commit) text += " |";
  }
  return text;
}

std::string Script::lease_of(Replica id) const {
  const StoryNode& node = cluster_->node(id.node);
  const StoryReplica& replica = node.of(id.group);
  const raft::HolderInstant end = node.shown_end(replica);
  if (!node.up || end == raft::HolderInstant::earliest()) return "none";
  const Duration until = node.clock.of(end);
  const bool valid = node.clock.at(cluster_->now()).holder < end;
  return (valid ? "until " : "ended at ") + format_time(until) +
         (replica.core->at_rest() ? ", at rest" : "");
}

std::string Script::promise_of(Replica id) const {
  const StoryNode& node = cluster_->node(id.node);
  const StoryReplica& replica = node.of(id.group);
  const raft::Core& core = *replica.core;
  const raft::StoredPromise& promise =
      node.up ? core.hard_state().promise : replica.disk_hard_state.promise;
  if (promise.holder == raft::kNobody) return "none";
  const std::string text =
      fmt::format("to {}, term {}", node_name(promise.holder, id.group), promise.term.value());
  if (!node.up) return fmt::format("{}, {} on disk", text, format_time(promise.duration));
  const raft::PromiseInstant now = node.clock.at(cluster_->now()).promise;
  const auto lasts = [&](raft::PromiseInstant until) {
    return fmt::format("{} {}", now < until ? "until" : "ended at",
                       format_time(node.clock.of(until)));
  };
  std::string shown = fmt::format("{}, {}, remembers {}", text, lasts(core.promise().until()),
                                  format_time(promise.duration));
  if (const raft::Uuid* const holder = core.bound_to(); holder != nullptr) {
    const lease::Support& support = *node.promises->support_of(*holder);
    // Bound at an epoch that is over.
    if (support.live(now) && core.promise_until() < support.until()) return shown;
    shown += fmt::format("; rests on the process of {}, epoch {}, {}", node_name(promise.holder),
                         epoch_text(support.epoch()), lasts(support.until()));
  }
  return shown;
}

std::string Script::timer_of(Replica id) const {
  const StoryNode& node = cluster_->node(id.node);
  if (!node.up) return "down";
  const raft::Core& core = *node.of(id.group).core;
  const raft::PromiseInstant due = core.next_deadline();
  if (due == raft::PromiseInstant::never()) return "none";
  const char* what =
      core.role() == raft::Role::leader ? "next round or end at " : "own election at ";
  return what + format_time(node.clock.of(due));
}

Result<void> Script::show(const Words& words) {
  const std::string what = words.size() > 1 ? words[1] : "";
  if (what == "messages" && words.size() == 2) {
    for (const Flight& flight : cluster_->flights()) {
      print(
          fmt::format("#{} {} {}: {}", flight.number, flight.way(), flight.name(), flight.text()));
    }
    return {};
  }
  const std::map<std::string, std::string (Script::*)(Replica) const> views = {
      {"state", &Script::state_of},
      {"log", &Script::log_of},
      {"lease", &Script::lease_of},
      {"promise", &Script::promise_of},
      {"timer", &Script::timer_of}};
  const auto view = views.find(what);
  if (view == views.end()) {
    return wrong(fmt::format(
        "`{}` cannot be shown; allowed: state, log, lease, promise, timer, messages", what));
  }
  const auto all = replica_or_all(words, 2);
  if (!all) return all.error();
  for (const Replica id : all.value()) {
    print(fmt::format("{}: {}", id.name(), (this->*view->second)(id)));
  }
  return {};
}

// The present state, in the words of an `expect`.
Result<std::string> Script::fact(const Words& words) const {
  const Error allowed = wrong(
      "allowed: NODE role NAME, NODE term N, NODE commit N, NODE log T T..., NODE vote none, NODE "
      "vote N committed|uncommitted, NODE lease none|valid|ended, NODE promise none, NODE promise "
      "N live|ended, read N by lease|quorum|leader, read N waits, read N refused");
  if (words.size() < 3) return allowed;
  if (words[1] == "read") {
    const auto which = number(words[2]);
    if (!which) return which.error();
    const auto found = cluster_->reads().find(which.value());
    if (found == cluster_->reads().end()) return wrong("there is no read " + words[2]);
    const StoryRead& read = found->second;
    if (!read.answered) return fmt::format("read {} waits", words[2]);
    if (!read.answer.index) return fmt::format("read {} refused", words[2]);
    const std::string basis = read.answer.basis == raft::ReadBasis::lease    ? "lease"
                              : read.answer.basis == raft::ReadBasis::quorum ? "quorum"
                                                                             : "leader";
    return fmt::format("read {} by {}", words[2], basis);
  }
  const auto id = replica(words[1]);
  if (!id) return id.error();
  const GroupId group = id.value().group;
  const StoryNode& node = cluster_->node(id.value().node);
  const StoryReplica& replica = node.of(group);
  const std::string head = fmt::format("{} {} ", words[1], words[2]);
  if (words[2] == "log") {
    std::string terms;
    for (const raft::Entry& entry : replica.log) {
      terms += fmt::format("{}{}", terms.empty() ? "" : " ", entry.id.term.value());
    }
    return head + (terms.empty() ? "empty" : terms);
  }
  if (!node.up) return wrong(node_name(node.id) + " is down");
  const raft::Core& core = *replica.core;
  const raft::Now now = node.clock.at(cluster_->now());
  if (words[2] == "role") return head + role_name(core.role());
  if (words[2] == "term") return fmt::format("{}{}", head, core.term().value());
  if (words[2] == "commit") return fmt::format("{}{}", head, core.commit_index().value());
  if (words[2] == "vote") return head + vote_of(core.hard_state(), group);
  if (words[2] == "lease") {
    const raft::HolderInstant end = node.shown_end(replica);
    if (end == raft::HolderInstant::earliest()) return head + "none";
    return head + (now.holder < end ? "valid" : "ended");
  }
  if (words[2] == "promise") {
    const NodeId holder = core.hard_state().promise.holder;
    if (holder == raft::kNobody) return head + "none";
    return fmt::format("{}{}{}", head, short_name(holder, group),
                       now.promise < core.promise_until() ? " live" : " ended");
  }
  return allowed;
}

Result<void> Script::expect(const Words& words) {
  const auto is = fact(words);
  if (!is) return is.error();
  const std::string wanted = join_from(words, 1);
  if (is.value() != wanted) {
    return wrong(fmt::format("expected `{}`, but it is `{}`", wanted, is.value()));
  }
  print("holds");
  return {};
}

}  // namespace leasehold::story
