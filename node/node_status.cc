#include <leasehold/node/node_status.h>

#include <utility>

namespace leasehold::node {

void describe(const replica::Driver& driver, lease::HolderInstant now, bool failed,
              NodeStatus& status) {
  const raft::Core& core = driver.core();
  status.role = core.role();
  status.term = core.term();
  status.leader = core.leader();
  status.commit = core.commit_index();
  status.applied = driver.applied();
  status.last = core.log().last_index();
  status.durable = core.durable_index();
  if (!failed && core.lease_end() > now) status.lease_left = core.lease_end() - now;
  status.first = core.log().base().index.next();
  status.log_bytes = driver.log_bytes();
  status.machine_durable = driver.machine_durable();
  status.disk_full = driver.disk_full();
  status.transfers = driver.transfers();
  status.counters = driver.counters();
}

std::string text_of(const net::Rejection& rejection) {
  std::string text = rejection.by_peer ? "refused by " : "refused ";
  text += rejection.peer == raft::kNobody ? std::string("a connection")
                                          : "node " + std::to_string(rejection.peer.value());
  if (!rejection.address.empty()) text += " at " + rejection.address;
  return text + " (" + std::string(net::reject_reason_name(rejection.reason)) +
         "): " + rejection.error.message;
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

void LogNotices::look(const replica::Driver& driver, const std::string& data_dir,
                      replica::Observer& observer) {
  if (driver.disk_full() != std::exchange(told_full_, driver.disk_full())) {
    observer.on_notice(told_full_ ? "the disk of " + data_dir +
                                        " is full: no command is taken until it has space again"
                                  : "the disk of " + data_dir + " has space again");
  }
  if (driver.log_never_cut() && !std::exchange(told_never_cut_, true)) {
    observer.on_notice(
        "the log is never cut: the state machine does not make itself durable, so the log grows "
        "until the disk is full");
  }
}

}  // namespace leasehold::node
