#include <leasehold/story/teller.h>

#include <algorithm>
#include <optional>

namespace leasehold::story {
namespace {

std::string number(std::uint64_t n) {
  return std::to_string(n);
}

std::string name(NodeId node) {
  return "node " + number(node.value());
}

std::string percent(std::int64_t ppm) {
  if (ppm == 0) return "the true rate";
  const std::int64_t size = ppm < 0 ? -ppm : ppm;
  std::string text = (ppm < 0 ? "-" : "+") + std::to_string(size / 10'000);
  if (size % 10'000 != 0) {
    std::string fraction = std::to_string(size % 10'000 + 10'000).substr(1);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    text += "." + fraction;
  }
  return text + " %";
}

std::string role(const Record& r) {
  const std::string term = number(r.term.value());
  std::string text = name(r.node);
  if (r.what == "leader") return text + " leads term " + term + ": a quorum voted for it";
  if (r.what == "candidate") {
    return text + " campaigns in term " + term +
           (r.why == "transfer" ? ": the leader transfers the leadership to it"
                                : ": a quorum would vote for it");
  }
  std::string why = r.why;
  if (r.why == "election_timeout") why = "it has heard of no leader for an election timeout";
  if (r.why == "higher_term") why = "it has learned of a higher term";
  if (r.why == "leader_appeared") why = "there is a leader";
  if (r.why == "quorum_lost") why = "no quorum has answered for a whole lease";
  if (r.why == "disk_stalled") why = "its disk has not answered for an election timeout";
  if (r.why == "removed") why = "it is no voter any more";
  if (r.why == "election_lost") why = "it is not elected";
  if (r.what == "pre_candidate") {
    return text + " asks who would vote for it beyond term " + term + ": " + why;
  }
  return text + " is a follower in term " + term + ": " + why;
}

std::string promise(const Record& r) {
  const std::string until = r.until ? format_time(*r.until) : "?";
  const std::string holder = name(r.peer) + " (term " + number(r.term.value()) + ")";
  if (r.why == "given") {
    return name(r.node) + " promises " + holder + " to elect nobody else until " + until;
  }
  if (r.why == "restarted") {
    return name(r.node) + " no longer knows since when it is bound to " + holder +
           " and honours the promise in full, until " + until;
  }
  if (r.why == "clock") {
    return name(r.node) + "'s promise to " + holder + " ends at " + until + " at this rate";
  }
  return name(r.node) + " renews its promise to " + name(r.peer) + " until " + until;
}

std::string lease(const Record& r) {
  const std::string until = r.until ? format_time(*r.until) : "?";
  if (r.why == "clock") return name(r.node) + "'s lease ends at " + until + " at this rate";
  std::string text = r.why == "gained" ? name(r.node) + " holds a lease until " + until
                                       : name(r.node) + "'s lease is extended to " + until;
  if (r.peer == raft::kNobody) return text;
  text += ": " + name(r.peer) + " acknowledged round " + number(r.round.value());
  if (r.from) text += ", which began at " + format_time(*r.from);
  return text;
}

std::string read(const Record& r) {
  const std::string which = r.number != 0 ? " read " + number(r.number) : " a read";
  if (r.why == "refused") return name(r.node) + " refuses" + which;
  if (r.why == "unknown") return name(r.node) + " has not answered" + which;
  std::string text = name(r.node) + " answers" + which;
  if (r.what == "lease") text += " by its lease";
  if (r.what == "off_thread") text += " by its lease, off the ordering thread";
  if (r.what == "quorum") text += " after a quorum's confirmation";
  if (r.what == "leader") text += " with its leader's index";
  if (r.what == "log") text += " through the log";
  if (r.index.value() != 0) text += ", at index " + number(r.index.value());
  return text + (r.text.empty() ? "" : ": " + r.text);
}

std::string write(const Record& r) {
  const std::string what = r.text.empty() ? "a value" : r.text;
  if (r.what == "asked") return name(r.node) + " is asked to write " + what;
  if (r.what == "done") return name(r.node) + " has written " + what;
  if (r.what == "refused") return name(r.node) + " refuses to write " + what;
  return "whether " + name(r.node) + " writes " + what + " is not known";
}

std::string clocks(const Record& r) {
  std::string text = name(r.node) + "'s clocks run at " + percent(r.holder_ppm);
  if (r.holder_ppm != r.promise_ppm) {
    text = name(r.node) + "'s holder clock runs at " + percent(r.holder_ppm) +
           ", its promise clock at " + percent(r.promise_ppm);
  }
  return text;
}

std::string message_id(const Record& r) {
  return r.number != 0 ? " #" + number(r.number) : "";
}

/// Faults and what else happens to a node from outside.
std::optional<std::string> from_outside(const Record& r) {
  const std::string until = r.until ? " until " + format_time(*r.until) : "";
  switch (r.kind) {
    case Kind::run: return r.text + ", " + number(r.number) + " nodes";
    case Kind::start:
      return name(r.node) + " starts" +
             (r.number > 1 ? " again, incarnation " + number(r.number) : "");
    case Kind::crash: return name(r.node) + " crashes";
    case Kind::fail: return name(r.node) + " stops: its storage failed";
    case Kind::pause:
      return name(r.node) +
             (r.what == "ordering_thread" ? "'s ordering thread stands still" : " stands still") +
             until;
    case Kind::suspend:
      return name(r.node) + "'s machine sleeps" + until +
             ": its promise clock stands still, its holder clock runs";
    case Kind::resume: return name(r.node) + " continues";
    case Kind::clock: return clocks(r);
    case Kind::cut: return name(r.node) + " cannot reach " + name(r.peer);
    case Kind::join: return name(r.node) + " can reach " + name(r.peer) + " again";
    case Kind::heal: return "all faults end";
    case Kind::disk:
      if (r.what == "full") return name(r.node) + "'s disk is full";
      if (r.what == "has_space") return name(r.node) + "'s disk has space again";
      return name(r.node) + (r.what == "stalls" ? "'s disk stalls" : "'s disk has caught up");
    case Kind::mark: return "---- " + r.text + " ----";
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
  line_(time + "  " + text);
}

std::string Teller::refusal(const Record& r) const {
  const char* what = r.what == "pre_vote" ? " a pre-vote" : " its vote";
  std::string text = name(r.node) + " refuses " + name(r.peer) + what + ": ";
  const auto lease = leases_.find(r.node);
  const auto promise = promises_.find(r.node);
  if (r.why == "own_lease_valid") {
    text += "it leads, and its lease runs";
    if (lease != leases_.end()) text += " until " + format_time(lease->second.until);
  } else if (r.why == "promised") {
    text += "it is bound";
    if (promise != promises_.end()) {
      text += " to " + name(promise->second.peer) + " until " + format_time(promise->second.until);
    }
  } else if (r.why == "old_term") {
    text += "its term " + number(r.term.value()) + " is newer";
  } else if (r.why == "voted_for_other") {
    text += "it voted for another in term " + number(r.term.value());
  } else {
    text += "its own log is more up to date";
  }
  return text;
}

std::string Teller::sentence(const Record& r) const {
  if (const auto text = from_outside(r)) return *text;
  switch (r.kind) {
    case Kind::role: return role(r);
    case Kind::leader:
      return name(r.node) + " hears from " + name(r.peer) + ", the leader of term " +
             number(r.term.value());
    case Kind::vote:
      return name(r.node) + (r.what == "pre_vote" ? " would vote for " : " votes for ") +
             name(r.peer) + (r.what == "pre_vote" ? "" : " in term " + number(r.term.value()));
    case Kind::refusal: return refusal(r);
    case Kind::promise: return promise(r);
    case Kind::unpromised:
      return name(r.node) + "'s promise to " + name(r.peer) + " is void: it was elected itself";
    case Kind::lease: return lease(r);
    case Kind::lease_lost: return name(r.node) + " gives its lease up";
    case Kind::settings:
      return name(r.node) + " is set to another lease than " + name(r.peer) + ", which asks for " +
             r.text;
    case Kind::log_cut:
      return name(r.node) + " cuts its log: it begins behind entry " + number(r.index.value());
    case Kind::snapshot:
      return r.what == "sending" ? name(r.node) + " sends a snapshot to " + name(r.peer) +
                                       ", which needs entries that are cut off"
                                 : name(r.node) + " takes a snapshot up to entry " +
                                       number(r.index.value()) + " in place of its log";
    case Kind::members:
      return r.what == "changed" ? name(r.node) + " goes by the members of entry " +
                                       number(r.index.value()) + ": " + r.text
                                 : name(r.node) + " knows the members of entry " +
                                       number(r.index.value()) + " to be committed";
    case Kind::transfer:
      if (r.what == "started")
        return name(r.node) + " begins to transfer the leadership to " + name(r.peer);
      if (r.what == "token") {
        return name(r.node) + " lets " + name(r.peer) + " campaign with entry " +
               number(r.index.value()) + ", and appends nothing behind it";
      }
      if (r.what == "unused") {
        return name(r.node) + " cannot use the token of " + name(r.peer) + " for entry " +
               number(r.index.value());
      }
      return name(r.node) + " ends its transfer to " + name(r.peer) + ": " + r.why;
    case Kind::round:
      return name(r.node) + " begins round " + number(r.round.value()) + " of term " +
             number(r.term.value());
    case Kind::sent:
      return number(r.node.value()) + "->" + number(r.peer.value()) + message_id(r) + " " + r.what +
             ": " + r.text;
    case Kind::delivered:
      return number(r.peer.value()) + "->" + number(r.node.value()) + message_id(r) + " " + r.what +
             " arrives";
    case Kind::lost:
      return number(r.node.value()) + "->" + number(r.peer.value()) + message_id(r) + " " + r.what +
             " is lost";
    case Kind::commit:
      return name(r.node) + " knows index " + number(r.index.value()) + " to be committed";
    case Kind::asked:
      return name(r.node) + " is asked for a read (" + r.what + ")" +
             (r.number != 0 ? ", number " + number(r.number) : "");
    case Kind::read: return read(r);
    case Kind::write: return write(r);
    default: return kind_name(r.kind);
  }
}

void Teller::remember(const Record& r) {
  switch (r.kind) {
    case Kind::promise: promises_[r.node] = {r.until.value_or(Duration{0}), r.peer, true}; break;
    case Kind::lease: leases_[r.node] = {r.until.value_or(Duration{0}), r.peer, true}; break;
    case Kind::unpromised: promises_.erase(r.node); break;
    case Kind::lease_lost: leases_.erase(r.node); break;
    case Kind::role:
      if (r.what != "leader") leases_.erase(r.node);
      break;
    case Kind::crash:
      leases_.erase(r.node);
      promises_.erase(r.node);
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

// What happens all the time is counted and told before the next thing that does not.
bool Teller::sum_up(const Record& r) {
  const auto count = [&r](Routine& routine) {
    ++routine.times;
    routine.last = r;
    return true;
  };
  if (r.kind == Kind::lease && r.why == "extended") return count(extended_[r.node]);
  if (r.kind == Kind::promise && r.why == "renewed") return count(renewed_[r.node]);
  if (r.kind == Kind::commit) {
    committed_ = std::max(committed_, r.index);
    return true;
  }
  // Reads that have a number were asked for by name; those of a workload are many.
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
    if (routine.times > 2) text += " (and " + number(routine.times - 1) + " times before)";
    say(routine.last.at, text);
  }
  std::string renewed;
  for (const auto& entry : renewed_) {
    const Record& last = entry.second.last;
    renewed += (renewed.empty() ? "" : "; ") + name(entry.first) + " to " + name(last.peer) +
               " until " + format_time(last.until.value_or(Duration{0}));
  }
  if (!renewed.empty()) say(last_, "promises are renewed: " + renewed);
  if (committed_ > told_committed_) {
    say(last_, "committed up to index " + number(committed_.value()));
    told_committed_ = committed_;
  }
  std::string answers;
  for (const auto& entry : answers_) {
    answers += (answers.empty() ? "" : ", ") + number(entry.second) + " " + entry.first;
  }
  if (!answers.empty()) say(last_, "clients: " + answers);
  extended_.clear();
  renewed_.clear();
  answers_.clear();
}

void Teller::pass(Duration now) {
  for (;;) {
    std::map<NodeId, Window>* kind = nullptr;
    NodeId node;
    Duration first = now;
    for (auto* windows : {&leases_, &promises_}) {
      for (const auto& entry : *windows) {
        if (!entry.second.open || entry.second.until > first) continue;
        if (kind != nullptr && entry.second.until == first) continue;
        kind = windows;
        node = entry.first;
        first = entry.second.until;
      }
    }
    if (kind == nullptr) return;
    flush();
    Window& window = (*kind)[node];
    window.open = false;
    last_ = std::max(last_, first);
    if (kind == &leases_) {
      say(first, name(node) + "'s lease has ended");
    } else {
      say(first, name(node) + "'s promise to " + name(window.peer) + " has ended");
    }
  }
}

void Teller::tell(const Record& record) {
  // A window that a record renews at this very instant has ended all the same, for an instant.
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
