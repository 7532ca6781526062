#include <leasehold/node/node_status.h>

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace leasehold::node {

void describe(const replica::Driver& driver, lease::Now now, bool failed, NodeStatus& status) {
  const raft::Core& core = driver.core();
  status.role = core.role();
  status.term = core.term();
  status.leader = core.leader();
  status.commit = core.commit_index();
  status.applied = driver.applied();
  status.last = core.log().last_index();
  status.durable = core.durable_index();
  if (!failed && core.lease_end() > now.holder) status.lease_left = core.lease_end() - now.holder;
  if (core.promise_until() > now.promise) status.promise_left = core.promise_until() - now.promise;
  status.promise_to = core.hard_state().promise.holder;
  status.calls_waiting = driver.pending();
  const replica::ProposalPlaces places = driver.proposals();
  status.proposals_held = places.held;
  status.proposals_queued = places.queued;
  status.proposals_uncommitted = places.uncommitted;
  status.settings = core.membership().settings;
  status.timing = core.timing();
  status.first = core.log().base().index.next();
  status.log_bytes = driver.log_bytes();
  status.machine_durable = driver.machine_durable();
  status.disk_full = driver.disk_full();
  status.transfers = driver.transfers();
  status.counters = driver.counters();
}

std::string text_of(const net::Rejection& rejection) {
  std::string text = rejection.by_peer ? "refused by " : "refused ";
  const auto out = std::back_inserter(text);
  if (rejection.peer == raft::kNobody) {
    fmt::format_to(out, "a connection");
  } else {
    fmt::format_to(out, "node {}", rejection.peer.value());
  }
  if (!rejection.address.empty()) fmt::format_to(out, " at {}", rejection.address);
  fmt::format_to(out, " ({}): {}", net::reject_reason_name(rejection.reason),
                 rejection.error.message);
  return text;
}

void LastRefusal::note(const net::Rejection& rejection, raft::PromiseInstant now) {
  text_ = text_of(rejection);
  peer_ = rejection.peer;
  until_ = now + kShown;
}

void LastRefusal::connected(raft::NodeId peer) {
  if (peer == peer_) text_.clear();
}

std::string LastRefusal::text(raft::PromiseInstant now) const {
  return now < until_ ? text_ : std::string();
}

std::optional<std::string> RefusalLines::line(const net::Rejection& rejection,
                                              raft::PromiseInstant now) {
  // This node dialled, and pauses before it dials again.
  if (rejection.by_peer) return text_of(rejection);
  if (now >= window_end_) {
    window_end_ = now + kWindow;
    lines_ = 0;
  }
  if (lines_ == kLinesMax) {
    ++without_a_line_;
    return std::nullopt;
  }
  ++lines_;
  std::string text = text_of(rejection);
  if (without_a_line_ != 0) {
    fmt::format_to(std::back_inserter(text), "; {} more were refused before it, without a line",
                   std::exchange(without_a_line_, 0));
  }
  return text;
}

void LogNotices::look(const replica::Driver& driver, const std::string& data_dir,
                      replica::Observer& observer) {
  if (driver.disk_full() != std::exchange(told_full_, driver.disk_full())) {
    observer.on_notice(
        told_full_
            ? fmt::format("the disk of {} is full: no command is taken until it has space again",
                          data_dir)
            : fmt::format("the disk of {} has space again", data_dir));
  }
  if (driver.log_never_cut() && !std::exchange(told_never_cut_, true)) {
    observer.on_notice(
        "the log is never cut: the state machine does not make itself durable, so the log grows "
        "until the disk is full");
  }
}

}  // namespace leasehold::node
