#include <leasehold/story/teller.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace leasehold::story {
namespace {

std::string percent(std::int64_t ppm) {
  if (ppm == 0) return "the true rate";
  const std::int64_t size = ppm < 0 ? -ppm : ppm;
  std::string text = fmt::format("{}{}", ppm < 0 ? "-" : "+", size / 10'000);
  if (size % 10'000 != 0) {
    std::string fraction = fmt::format(".{:04}", size % 10'000);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    text += fraction;
  }
  return text + " %";
}

std::string role(const Record& r) {
  const std::uint64_t term = r.term.value();
  const std::string node = node_name(r.node, r.group);
  if (r.what == "leader") return fmt::format("{} leads term {}: a quorum voted for it", node, term);
  if (r.what == "candidate") {
    return fmt::format("{} campaigns in term {}{}", node, term,
                       r.why == "transfer" ? ": the leader transfers the leadership to it"
                                           : ": a quorum would vote for it");
  }
  std::string why = r.why;
  if (r.why == "election_timeout") why = "it has heard of no leader for an election timeout";
  if (r.why == "leader_released") why = "its leader has left the role";
  if (r.why == "leader_ended") why = "it knows that the leader's process has ended";
  if (r.why == "higher_term") why = "it has learned of a higher term";
  if (r.why == "leader_appeared") why = "there is a leader";
  if (r.why == "quorum_lost") why = "no quorum has answered for a whole lease";
  if (r.why == "disk_stalled") why = "its disk has not answered for an election timeout";
  if (r.why == "process_stalled") why = "its process makes no progress";
  if (r.why == "machine_stalled") why = "its state machine makes no progress";
  if (r.why == "removed") why = "it is no voter any more";
  if (r.why == "election_lost") why = "it is not elected";
  if (r.what == "pre_candidate") {
    return fmt::format("{} asks who would vote for it beyond term {}: {}", node, term, why);
  }
  return fmt::format("{} is a follower in term {}: {}", node, term, why);
}

std::string promise(const Record& r) {
  const std::string until = r.until ? format_time(*r.until) : "?";
  const std::string holder =
      fmt::format("{} (term {})", node_name(r.peer, r.group), r.term.value());
  if (r.why == "given") {
    return fmt::format("{} promises {} to elect nobody else until {}", node_name(r.node, r.group),
                       holder, until);
  }
  if (r.why == "restarted") {
    return fmt::format(
        "{} no longer knows since when it is bound to {} and honours the promise "
        "in full, until {}",
        node_name(r.node, r.group), holder, until);
  }
  if (r.why == "unbound") {
    return fmt::format("{}'s promise to {} rests on no beats any more, and lasts until {}",
                       node_name(r.node, r.group), holder, until);
  }
  if (r.why == "clock") {
    return fmt::format("{}'s promise to {} ends at {} at this rate", node_name(r.node, r.group),
                       holder, until);
  }
  return fmt::format("{} renews its promise to {} until {}", node_name(r.node, r.group),
                     node_name(r.peer, r.group), until);
}

std::string lease(const Record& r) {
  const std::string until = r.until ? format_time(*r.until) : "?";
  if (r.why == "clock") {
    return fmt::format("{}'s lease ends at {} at this rate", node_name(r.node, r.group), until);
  }
  std::string text =
      r.why == "gained"
          ? fmt::format("{} holds a lease until {}", node_name(r.node, r.group), until)
          : fmt::format("{}'s lease is {} to {}", node_name(r.node, r.group), r.why, until);
  if (r.peer == raft::kNobody) return text;
  text += fmt::format(": {} acknowledged {} {}", node_name(r.peer, r.group),
                      r.what == "beat" ? "beat" : "round", r.round.value());
  if (r.from) text += ", which began at " + format_time(*r.from);
  return text;
}

std::string read(const Record& r) {
  const std::string which = r.number != 0 ? fmt::format(" read {}", r.number) : " a read";
  if (r.why == "refused") return fmt::format("{} refuses{}", node_name(r.node, r.group), which);
  if (r.why == "unknown")
    return fmt::format("{} has not answered{}", node_name(r.node, r.group), which);
  std::string text = fmt::format("{} answers{}", node_name(r.node, r.group), which);
  if (r.what == "lease") text += " by its lease";
  if (r.what == "off_thread") text += " by its lease, off the ordering thread";
  if (r.what == "quorum") text += " after a quorum's confirmation";
  if (r.what == "leader") text += " with its leader's index";
  if (r.what == "log") text += " through the log";
  if (r.index.value() != 0) text += fmt::format(", at index {}", r.index.value());
  return text + (r.text.empty() ? "" : ": " + r.text);
}

std::string write(const Record& r) {
  const std::string what = r.text.empty() ? "a value" : r.text;
  if (r.what == "asked")
    return fmt::format("{} is asked to write {}", node_name(r.node, r.group), what);
  if (r.what == "done") return fmt::format("{} has written {}", node_name(r.node, r.group), what);
  if (r.what == "refused")
    return fmt::format("{} refuses to write {}", node_name(r.node, r.group), what);
  return fmt::format("whether {} writes {} is not known", node_name(r.node, r.group), what);
}

std::string clocks(const Record& r) {
  std::string text =
      fmt::format("{}'s clocks run at {}", node_name(r.node, r.group), percent(r.holder_ppm));
  if (r.holder_ppm != r.promise_ppm) {
    text = fmt::format("{}'s holder clock runs at {}, its promise clock at {}",
                       node_name(r.node, r.group), percent(r.holder_ppm), percent(r.promise_ppm));
  }
  return text;
}

std::string transfer(const Record& r) {
  const std::string node = node_name(r.node, r.group);
  const std::string peer = node_name(r.peer, r.group);
  if (r.what == "started") {
    return fmt::format("{} begins to transfer the leadership to {}", node, peer);
  }
  if (r.what == "token") {
    return fmt::format("{} lets {} campaign with entry {}, and appends nothing behind it", node,
                       peer, r.index.value());
  }
  if (r.what == "unused") {
    return fmt::format("{} cannot use the token of {} for entry {}", node, peer, r.index.value());
  }
  return fmt::format("{} ends its transfer to {}: {}", node, peer, r.why);
}

std::string message_id(const Record& r) {
  return r.number != 0 ? fmt::format(" #{}", r.number) : "";
}

/// Faults and other events that come from outside a node.
std::optional<std::string> from_outside(const Record& r) {
  const std::string until = r.until ? " until " + format_time(*r.until) : "";
  switch (r.kind) {
    case Kind::run: return fmt::format("{}, {} nodes", r.text, r.number);
    case Kind::start:
      return fmt::format("{} starts{}", node_name(r.node, r.group),
                         r.number > 1 ? fmt::format(" again, incarnation {}", r.number) : "");
    case Kind::crash: return node_name(r.node, r.group) + " crashes";
    case Kind::fail: return node_name(r.node, r.group) + " stops: its storage failed";
    case Kind::pause:
      return node_name(r.node, r.group) +
             (r.what == "ordering_thread" ? "'s ordering thread stands still" : " stands still") +
             until;
    case Kind::suspend:
      return fmt::format(
          "{}'s machine sleeps{}: its promise clock stands still, its holder clock runs",
          node_name(r.node, r.group), until);
    case Kind::resume: return node_name(r.node, r.group) + " continues";
    case Kind::clock: return clocks(r);
    case Kind::cut:
      return fmt::format("{} cannot reach {}", node_name(r.node, r.group),
                         node_name(r.peer, r.group));
    case Kind::join:
      return fmt::format("{} can reach {} again", node_name(r.node, r.group),
                         node_name(r.peer, r.group));
    case Kind::heal: return "all faults end";
    case Kind::disk:
      if (r.what == "full") return node_name(r.node, r.group) + "'s disk is full";
      if (r.what == "has_space") return node_name(r.node, r.group) + "'s disk has space again";
      return node_name(r.node, r.group) +
             (r.what == "stalls" ? "'s disk stalls" : "'s disk has caught up");
    case Kind::mark: return fmt::format("---- {} ----", r.text);
    default: return std::nullopt;
  }
}

}  // namespace

void Teller::set_detail(Detail detail) {
  flush();
  detail_ = detail;
}

void Teller::say(Duration at, const std::string& text) {
  std::string time = format_time(at);
  if (time.size() < time_columns_) time.insert(0, time_columns_ - time.size(), ' ');
  line_(fmt::format("{}  {}", time, text));
}

std::string Teller::refusal(const Record& r) const {
  const char* what = r.what == "pre_vote" ? " a pre-vote" : " its vote";
  std::string text = fmt::format("{} refuses {}{}: ", node_name(r.node, r.group),
                                 node_name(r.peer, r.group), what);
  const auto lease = leases_.find(who(r));
  const auto promise = promises_.find(who(r));
  if (r.why == "own_lease_valid") {
    text += "it leads, and its lease runs";
    if (lease != leases_.end()) text += " until " + format_time(lease->second.until);
  } else if (r.why == "promised") {
    text += "it is bound";
    if (promise != promises_.end()) {
      text += fmt::format(" to {} until {}", node_name(promise->second.peer, r.group),
                          format_time(promise->second.until));
    }
  } else if (r.why == "old_term") {
    text += fmt::format("its term {} is newer", r.term.value());
  } else if (r.why == "voted_for_other") {
    text += fmt::format("it voted for another in term {}", r.term.value());
  } else {
    text += "its own log is more up to date";
  }
  return text;
}

std::string Teller::sentence(const Record& r) const {
  if (const auto text = from_outside(r)) return *text;
  const std::string node = node_name(r.node, r.group);
  const std::string here = short_name(r.node, r.group);
  const std::string there = short_name(r.peer, r.group);
  switch (r.kind) {
    case Kind::role: return role(r);
    case Kind::notice:
      return fmt::format("{} learns that process {} of {} has ended", node, r.number,
                         node_name(r.peer, r.group));
    case Kind::leader:
      return fmt::format("{} hears from {}, the leader of term {}", node,
                         node_name(r.peer, r.group), r.term.value());
    case Kind::vote:
      return r.what == "pre_vote"
                 ? fmt::format("{} would vote for {}", node, node_name(r.peer, r.group))
                 : fmt::format("{} votes for {} in term {}", node, node_name(r.peer, r.group),
                               r.term.value());
    case Kind::refusal: return refusal(r);
    case Kind::promise: return promise(r);
    case Kind::unpromised:
      return fmt::format("{}'s promise to {} is void: {}", node, node_name(r.peer, r.group),
                         r.what == "elected"    ? "it was elected itself"
                         : r.what == "released" ? "the leader has left its role"
                                                : "the process that it was given to has ended");
    case Kind::lease: return lease(r);
    case Kind::lease_lost: return node + " gives its lease up";
    case Kind::settings:
      if (r.what == "changed") {
        return fmt::format("{} goes by the settings of entry {}: {}", node, r.index.value(),
                           r.text);
      }
      return fmt::format("{} is set to another lease than {}, which asks for {}", node,
                         node_name(r.peer, r.group), r.text);
    case Kind::log_cut:
      return fmt::format("{} cuts its log: it begins behind entry {}", node, r.index.value());
    case Kind::snapshot:
      return r.what == "sending"
                 ? fmt::format("{} sends a snapshot to {}, which needs entries that are cut off",
                               node, node_name(r.peer, r.group))
                 : fmt::format("{} takes a snapshot up to entry {} in place of its log", node,
                               r.index.value());
    case Kind::members:
      return r.what == "changed" ? fmt::format("{} goes by the members of entry {}: {}", node,
                                               r.index.value(), r.text)
                                 : fmt::format("{} knows the members of entry {} to be committed",
                                               node, r.index.value());
    case Kind::transfer: return transfer(r);
    case Kind::round:
      return fmt::format("{} begins round {} of term {}", node, r.round.value(), r.term.value());
    case Kind::sent:
      return fmt::format("{}->{}{} {}: {}", here, there, message_id(r), r.what, r.text);
    case Kind::delivered:
      return fmt::format("{}->{}{} {} arrives", there, here, message_id(r), r.what);
    case Kind::lost: return fmt::format("{}->{}{} {} is lost", here, there, message_id(r), r.what);
    case Kind::commit:
      return fmt::format("{} knows index {} to be committed", node, r.index.value());
    case Kind::asked:
      return fmt::format("{} is asked for a read ({}){}", node, r.what,
                         r.number != 0 ? fmt::format(", number {}", r.number) : "");
    case Kind::read: return read(r);
    case Kind::write: return write(r);
    default: return kind_name(r.kind);
  }
}

void Teller::remember(const Record& r) {
  switch (r.kind) {
    case Kind::promise: promises_[who(r)] = {r.until.value_or(Duration{0}), r.peer, true}; break;
    case Kind::lease: leases_[who(r)] = {r.until.value_or(Duration{0}), r.peer, true}; break;
    case Kind::unpromised: promises_.erase(who(r)); break;
    case Kind::lease_lost: leases_.erase(who(r)); break;
    case Kind::role:
      if (r.what != "leader") leases_.erase(who(r));
      break;
    case Kind::crash:
      for (auto* windows : {&leases_, &promises_}) {
        std::erase_if(*windows, [&r](const auto& entry) { return entry.first.first == r.node; });
      }
      break;
    default: break;
  }
}

bool Teller::left_out(const Record& r) const {
  switch (r.kind) {
    case Kind::round:
    case Kind::sent:
    case Kind::delivered:
    case Kind::lost:
    case Kind::asked: return true;
    case Kind::write: return r.what == "asked";
    default: return false;
  }
}

// Routine events are counted, and summed up before the next event that is not routine.
bool Teller::sum_up(const Record& r) {
  const auto count = [&r](Routine& routine) {
    ++routine.times;
    routine.last = r;
    return true;
  };
  if (r.kind == Kind::lease && r.why == "extended") return count(extended_[who(r)]);
  if (r.kind == Kind::promise && r.why == "renewed") return count(renewed_[who(r)]);
  if (r.kind == Kind::commit) {
    Index& committed = committed_[r.group];
    committed = std::max(committed, r.index);
    return true;
  }
  // A scenario numbers its reads; those of a workload have no number, and are many.
  if (r.kind == Kind::read && r.number == 0) {
    if (!r.why.empty()) {
      ++answers_["reads " + r.why];
    } else {
      ++answers_[r.what == "off_thread" ? "reads by lease, off the thread" : "reads by " + r.what];
    }
    return true;
  }
  if (r.kind == Kind::write) {
    ++answers_["writes " + r.what];
    return true;
  }
  return false;
}

void Teller::flush() {
  for (const auto& entry : extended_) {
    const Routine& routine = entry.second;
    std::string text = sentence(routine.last);
    if (routine.times == 2) text += " (and once before)";
    if (routine.times > 2) text += fmt::format(" (and {} times before)", routine.times - 1);
    say(routine.last.at, text);
  }
  std::string renewed;
  for (const auto& entry : renewed_) {
    const Record& last = entry.second.last;
    renewed += fmt::format("{}{} to {} until {}", renewed.empty() ? "" : "; ",
                           node_name(last.node, last.group), node_name(last.peer, last.group),
                           format_time(last.until.value_or(Duration{0})));
  }
  if (!renewed.empty()) say(last_, "promises are renewed: " + renewed);
  for (const auto& [group, index] : committed_) {
    if (index <= std::exchange(told_committed_[group], index)) continue;
    say(last_, fmt::format("committed up to index {}{}", index.value(),
                           group.value() < 2 ? "" : fmt::format(" in group {}", group.value())));
  }
  std::string answers;
  for (const auto& entry : answers_) {
    answers += fmt::format("{}{} {}", answers.empty() ? "" : ", ", entry.second, entry.first);
  }
  if (!answers.empty()) say(last_, "clients: " + answers);
  extended_.clear();
  renewed_.clear();
  answers_.clear();
}

void Teller::pass(Duration now) {
  for (;;) {
    std::map<Who, Window>* kind = nullptr;
    Who of;
    Duration first = now;
    for (auto* windows : {&leases_, &promises_}) {
      for (const auto& entry : *windows) {
        if (!entry.second.open || entry.second.until > first) continue;
        if (kind != nullptr && entry.second.until == first) continue;
        kind = windows;
        of = entry.first;
        first = entry.second.until;
      }
    }
    if (kind == nullptr) return;
    flush();
    Window& window = (*kind)[of];
    window.open = false;
    last_ = std::max(last_, first);
    if (kind == &leases_) {
      say(first, node_name(of.first, of.second) + "'s lease has ended");
    } else {
      say(first, fmt::format("{}'s promise to {} has ended", node_name(of.first, of.second),
                             node_name(window.peer, of.second)));
    }
  }
}

void Teller::tell(const Record& record) {
  // A window that a record renews at this very instant did end, for an instant.
  pass(record.at);
  const bool brief = detail_ == Detail::brief;
  if (brief && left_out(record)) return;
  const bool summed = brief && sum_up(record);
  remember(record);
  if (!summed) {
    flush();
    say(record.at, sentence(record));
  }
  last_ = record.at;
}

}  // namespace leasehold::story
