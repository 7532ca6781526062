// The calls of a replica's program, which come from its own threads, and the status that it gets.
#include <leasehold/node/node_group.h>

#include <utility>

namespace leasehold::node {

void GroupShell::propose_batch(std::vector<Proposal> batch, CallOptions options) {
  if (batch.empty()) return;
  std::vector<replica::Event> events;
  events.reserve(batch.size());
  const raft::PromiseInstant end = deadline(options);
  for (Proposal& one : batch) {
    auto span = tracing().proposal(one.trace != nullptr ? one.trace : options.trace, one.done);
    events.emplace_back(replica::Propose{std::move(one.command), end, std::move(one.done),
                                         options.group, options.repeatable || one.repeatable,
                                         options.expected, std::move(span)});
  }
  loop_.post(id(), std::move(events));
}

void GroupShell::drain(CallOptions options, DrainCompletion done) {
  loop_.post_task([this, end = deadline(options), done = std::move(done)] {
    drain_.begin(end, done);
    stopped_ ? drain_.end(true) : loop_.schedule(*this);
  });
}

void GroupShell::change_members(MemberEdits edits, CallOptions options, MembersCompletion done) {
  Members::Call call{std::move(edits), options.expected_membership, deadline(options),
                     options.group, std::move(done)};
  loop_.post_task([this, call = std::move(call)]() mutable {
    const bool open = !stopped_ && !failure_;
    members_->change(open ? core() : nullptr, std::move(call));
  });
}

void GroupShell::change_settings(const raft::SettingsEdit& edit, CallOptions options,
                                 replica::SettingsCompletion done) {
  replica::ChangeSettings event{edit, deadline(options), std::move(done), options.group};
  loop_.post_task([this, event = std::move(event)]() mutable {
    const bool open = !stopped_ && !failure_;
    const auto unready = open ? member_without_settings() : std::nullopt;
    if (unready) {
      replica::SettingsResult result;
      result.status = replica::GroupCallStatus::refused;
      result.refused = raft::SettingsRefused{raft::SettingsObstacle::member_unready, *unready};
      result.leader = core()->leader();
      event.done(result);
      return;
    }
    post(std::move(event));
  });
}

// At a leader of a group without settings: a member that could not read an entry with some, or that
// this node does not reach.
std::optional<raft::NodeId> GroupShell::member_without_settings() const {
  if (!leads() || core()->membership().settings) return std::nullopt;
  for (const raft::Member& member : core()->membership().members) {
    if (member.id == replica_) continue;
    const auto spoken = ground_.links->wire_version(member.id);
    if (!spoken || *spoken < wire::kSettingsVersion) return member.id;
  }
  return std::nullopt;
}

void GroupShell::cut_log(replica::LogCutCompletion done) {
  loop_.post_task([this, done = std::move(done)] {
    if (stopped_) return done(Error{ErrorCode::stopped, "the node is stopping"});
    if (!driver_) return done(Error{ErrorCode::unavailable, "the group has not formed yet"});
    batch_.emplace_back(replica::CutLog{done});
    loop_.schedule(*this);
  });
}

/// Remembered too: the disk may be full before there is a driver.
void GroupShell::tap(std::shared_ptr<replica::Tap> tap) {
  loop_.post_task([this, tap = std::move(tap)]() mutable {
    if (stopped_ || failure_) return;
    if (driver_) {
      driver_->tap(std::move(tap));
      loop_.schedule(*this);
    } else {
      tap_ = std::move(tap);
    }
  });
}

void GroupShell::machine_space(bool full) {
  loop_.post_task([this, full] {
    machine_full_ = full;
    if (!driver_) return;
    batch_.emplace_back(replica::MachineSpace{full});
    loop_.schedule(*this);
  });
}

void GroupShell::status(std::function<void(NodeStatus)> done) {
  loop_.post_task([this, done = std::move(done)] { done(make_status()); });
}

void GroupShell::on_failure(std::function<void(Error)> failed) {
  loop_.post_task([this, failed = std::move(failed)] {
    on_failure_ = failed;
    report_failure();
  });
}

NodeStatus GroupShell::make_status() const {
  NodeStatus status;
  status.id = replica_;
  status.cluster_id = ground_.cluster_id;
  status.witness = witness_;
  status.formed = !formation_ || formation_->formed();
  if (formation_) status.missing = formation_->missing();
  if (failure_) status.problem = failure_->message;
  loop_.describe(status);
  status.uuid = ground_.self.uuid;
  status.incarnation = ground_.self.incarnation;
  if (ground_.log != nullptr) status.syncs = ground_.log->syncs();
  if (!driver_) {
    for (const raft::Member& member : ground_.members) {
      status.members.push_back({member.id, member.address, true, connected(member.id), {}});
    }
    return status;
  }
  const lease::Now now = clock().now();
  node::describe(*driver_, now, failure_.has_value(), status);
  status.level = view_.level();
  members_->describe(driver_->core(), status);
  for (MemberStatus& member : status.members) {
    const auto heard = driver_->core().last_heard(member.id);
    if (heard && member.id != status.id) member.heard_ago = now.holder - *heard;
  }
  status.last_leader = status.leader != raft::kNobody ? status.leader : changes_.last_leader();
  return status;
}

}  // namespace leasehold::node
