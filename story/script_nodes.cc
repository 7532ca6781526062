// The commands about nodes: crashes, pauses, disks, and messages that no node has sent.

#include <leasehold/story/script.h>
#include <leasehold/story/script_words.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace leasehold::story {

Result<void> Script::crash(const Words& words) {
  if (words.size() != 2) return wrong("which node?");
  const auto id = node(words[1]);
  if (!id) return id.error();
  if (!cluster_->node(id.value()).up) {
    return wrong(fmt::format("node {} is down already", words[1]));
  }
  cluster_->crash(id.value());
  return {};
}

Result<void> Script::notice(const Words& words) {
  if (words.size() < 3 || words.size() > 4) return wrong("which node, and about which one?");
  const auto id = node(words[1]);
  if (!id) return id.error();
  const auto peer = node(words[2]);
  if (!peer) return peer.error();
  if (id.value() == peer.value()) return wrong("a node gets no notice about itself");
  const StoryNode& told = cluster_->node(id.value());
  if (!told.up || told.paused) return wrong(fmt::format("node {} hears nothing now", words[1]));
  raft::Incarnation ended = cluster_->ended(peer.value());
  if (words.size() == 4) {
    const auto number = parse_number(words[3]);
    if (!number || *number == 0 || *number > ended.value()) {
      return wrong(fmt::format("{} is no process of node {} that has ended", words[3], words[2]));
    }
    ended = raft::Incarnation(*number);
  }
  if (ended.value() == 0) return wrong(fmt::format("no process of node {} has ended", words[2]));
  cluster_->notice(id.value(), peer.value(), ended);
  return {};
}

Result<void> Script::transfer(const Words& words) {
  if (words.size() != 3) return wrong("which node, and to which one?");
  const auto id = running_replica(words[1]);
  if (!id) return id.error();
  const auto to = replica(words[2]);
  if (!to) return to.error();
  if (to.value().group != id.value().group) {
    return wrong(fmt::format("{} is of another group than {}", words[2], words[1]));
  }
  if (const auto refused = cluster_->transfer(id.value(), to.value().node)) {
    print(fmt::format("node {} refuses: {}", words[1], raft::text_of(*refused)));
  }
  return {};
}

Result<void> Script::restart(const Words& words) {
  if (words.size() < 2) return wrong("which node?");
  const auto id = node(words[1]);
  if (!id) return id.error();
  const auto given = settings(words, 2, {"lease", "margin", "drift"});
  if (!given) return given.error();
  const auto edit = edit_of(given.value());
  if (!edit) return edit.error();
  StoryNode& node = cluster_->node(id.value());
  raft::GroupSettings own;
  own.timing = node.options.timing;
  const lease::Timing before = own.timing;
  own = edit.value().applied_to(own);
  if (const auto valid = own.timing.validate(); !valid) return valid.error();
  node.options.timing = own.timing;
  if (const Done kept = clocks_keep(id.value(), cluster_->drift_ppm_max(id.value())); !kept) {
    node.options.timing = before;
    return kept;
  }
  cluster_->restart(id.value());
  return {};
}

Result<raft::SettingsEdit> Script::edit_of(const std::map<std::string, std::string>& given) {
  raft::SettingsEdit edit;
  const std::map<std::string, std::optional<Duration>*> times = {
      {"lease", &edit.lease},
      {"heartbeat", &edit.heartbeat},
      {"election", &edit.election_timeout},
      {"rtt", &edit.max_round_trip},
      {"margin", &edit.margin}};
  for (const auto& [name, word] : given) {
    const auto of_time = times.find(name);
    if (of_time != times.end()) {
      const auto value = time(word);
      if (!value) return value.error();
      *of_time->second = value.value();
    } else if (name == "drift") {
      edit.max_clock_drift_ppm = parse_rate(word);
      if (!edit.max_clock_drift_ppm) {
        return wrong(fmt::format("`{}` is not a drift; allowed: 10%, 120ppm", word));
      }
    } else if (word == "on" || word == "off") {
      edit.lease_reads = word == "on";
    } else {
      return wrong(fmt::format("`{}` is not a setting of reads; allowed: on, off", word));
    }
  }
  return edit;
}

/// A bound that clocks break already is refused.
Result<void> Script::clocks_keep(NodeId id, std::int64_t most) const {
  const auto [holder, promise] = cluster_->node(id).clock.rates();
  for (const std::int64_t rate : {holder, promise}) {
    if (rate <= most && rate >= -most) continue;
    return wrong(
        fmt::format("the clocks of node {} are off by {}ppm, beyond the bound of {}ppm; "
                    "make them better first: `drift {} 0`",
                    id.value(), rate, most, id.value()));
  }
  return {};
}

Result<void> Script::change_settings(const Words& words) {
  if (words.size() < 3) return wrong("which node, and what?");
  const auto id = running_replica(words[1]);
  if (!id) return id.error();
  const auto given =
      settings(words, 2, {"lease", "heartbeat", "election", "rtt", "margin", "drift", "reads"});
  if (!given) return given.error();
  const auto edit = edit_of(given.value());
  if (!edit) return edit.error();
  for (std::uint64_t i = 1; i <= cluster_->size(); ++i) {
    const std::int64_t own = cluster_->node(NodeId(i)).options.timing.max_clock_drift_ppm;
    const std::int64_t most = std::max(own, edit.value().max_clock_drift_ppm.value_or(0));
    if (!edit.value().max_clock_drift_ppm) continue;
    if (const Done kept = clocks_keep(NodeId(i), most); !kept) return kept;
  }
  const auto answer = cluster_->change_settings(id.value(), edit.value());
  if (const auto* refused = std::get_if<raft::SettingsRefused>(&answer)) {
    print(fmt::format("node {} refuses: {}", words[1], raft::text_of(*refused)));
  }
  return {};
}

Result<void> Script::pause(const Words& words) {
  if (words.size() != 2) return wrong("which node?");
  const auto id = running(words[1]);
  if (!id) return id.error();
  cluster_->pause(id.value());
  return {};
}

Result<void> Script::resume(const Words& words) {
  const bool read_first = words.size() == 3 && words[2] == "read";
  if (words.size() != 2 && !read_first) return wrong("which node?");
  const auto id = node(words[1]);
  if (!id) return id.error();
  if (!cluster_->node(id.value()).paused) {
    return wrong(fmt::format("node {} is not paused", words[1]));
  }
  cluster_->resume(id.value(), read_first);
  return {};
}

Result<void> Script::disk(const Words& words) {
  if (words.size() != 3 || (words[2] != "stall" && words[2] != "sync")) {
    return wrong("which node, and stall or sync?");
  }
  const auto id = running(words[1]);
  if (!id) return id.error();
  words[2] == "stall" ? cluster_->stall(id.value()) : cluster_->sync(id.value());
  return {};
}

// Raft's own rules make these impossible; a core that receives one stops with an assertion.
Result<void> Script::sound_append(NodeId from, Replica to, const raft::AppendRequest& m) const {
  if (m.term == Term()) return wrong("term 0 has no leader; allowed: a term from 1 on");
  if (!cluster_->node(to.node).up) return {};
  const raft::Core& core = *cluster_->replica(to).core;
  Index committed;
  for (std::uint64_t i = 1; i <= cluster_->size(); ++i) {
    const StoryReplica& other = cluster_->replica({NodeId(i), to.group});
    if (cluster_->node(NodeId(i)).up) committed = std::max(committed, other.core->commit_index());
  }
  if (m.commit > committed) {
    return wrong(fmt::format("nobody has committed index {}", m.commit.value()));
  }
  const bool leads = core.role() == raft::Role::leader;
  const bool other = core.leader() != raft::kNobody && core.leader() != from;
  if (m.term == core.term() && (leads || other)) {
    return wrong(fmt::format("term {} has another leader already", m.term.value()));
  }
  if (m.prev.index <= core.commit_index() && !core.log().matches(m.prev)) {
    return wrong(
        fmt::format("{} has committed another entry there; last_term and last_index "
                    "name the entry before the heartbeat",
                    to.name()));
  }
  return {};
}

Result<void> Script::forge(const Words& words) {
  if (words.size() < 3) return wrong("on which link, and what?");
  const auto ends = link(words[1]);
  if (!ends) return ends.error();
  const auto given = settings(words, 3,
                              {"term", "request_term", "last_term", "last_index", "round", "lease",
                               "commit", "promised", "matched", "index"});
  if (!given) return given.error();
  std::map<std::string, std::uint64_t> values;
  for (const auto& setting : given.value()) {
    const bool yes = setting.second == "yes";
    if (yes || setting.second == "no") {
      values[setting.first] = yes ? 1 : 0;
      continue;
    }
    const auto value =
        setting.first == "lease" ? Result<std::uint64_t>(std::uint64_t{0}) : number(setting.second);
    if (!value) return value.error();
    values[setting.first] = value.value();
  }
  const auto& [from, to] = ends.value();
  const lease::Timing& timing = cluster_->node(from.node).options.timing;
  Duration lease = timing.lease;
  if (given.value().count("lease") != 0) {
    const auto value = time(given.value().at("lease"));
    if (!value) return value.error();
    lease = value.value();
  }
  const Term term(values["term"]);
  const raft::LogId last{Term(values["last_term"]), Index(values["last_index"])};
  raft::Message message;
  if (words[2] == "vote") {
    message = raft::VoteRequest{term, last};
  } else if (words[2] == "pre_vote") {
    message = raft::PreVoteRequest{term, last};
  } else if (words[2] == "append") {
    raft::AppendRequest m;
    m.term = term;
    m.prev = last;
    m.round = Round(values["round"]);
    m.lease = lease;
    m.drift_ppm = timing.max_clock_drift_ppm;
    m.commit = Index(values["commit"]);
    if (const Done sound = sound_append(from.node, to, m); !sound) return sound;
    message = m;
  } else if (words[2] == "append_reply") {
    raft::AppendReply m;
    m.term = term;
    m.request_term = Term(values["request_term"]);
    m.promised = values["promised"] != 0;
    m.matched = values["matched"] != 0;
    m.round = Round(values["round"]);
    m.index = Index(values["index"]);
    message = m;
  } else {
    return wrong(fmt::format("`{}` cannot be forged; allowed: vote, pre_vote, append, append_reply",
                             words[2]));
  }
  cluster_->forge(from, to.node, message);
  return {};
}

}  // namespace leasehold::story
