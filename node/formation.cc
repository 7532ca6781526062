#include <leasehold/base/assert.h>
#include <leasehold/node/formation.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace leasehold::node {

namespace {

std::string name(raft::NodeId id) {
  return fmt::format("node {}", id.value());
}

const raft::Member* find(const std::vector<raft::Member>& members, raft::NodeId id) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [id](const raft::Member& member) { return member.id == id; });
  return found == members.end() ? nullptr : &*found;
}

}  // namespace

Formation::Formation(raft::NodeId self, raft::Uuid uuid, InitialSet proposed, InitialSet confirmed,
                     bool formed, Manner manner)
    : self_(self),
      uuid_(uuid),
      members_(std::move(proposed.members)),
      settings_(std::move(proposed.settings)),
      manner_(manner),
      confirmed_(std::move(confirmed)),
      formed_(formed) {
  LEASEHOLD_ASSERT(!formed_ || !confirmed_.members.empty());
  std::sort(members_.begin(), members_.end(),
            [](const raft::Member& a, const raft::Member& b) { return a.id < b.id; });
  LEASEHOLD_ASSERT(find(members_, self_) != nullptr);
  if (formed_) return;
  if (confirmed_.members.empty()) {
    learned(self_, uuid_);
  } else {
    confirmed_by_.insert(self_);
    repeat();
    maybe_form();
  }
}

Result<void> Formation::judge(raft::NodeId peer, raft::Uuid uuid) const {
  const raft::Member* member = find(confirmed_.members, peer);
  if (member == nullptr || member->uuid == uuid) return {};
  if (formed_) {
    return Error{ErrorCode::wrong_cluster,
                 fmt::format("{} is known under another uuid: its directory was wiped or replaced. "
                             "Remove it from the group and add it again as a new member",
                             name(peer))};
  }
  return Error{ErrorCode::wrong_cluster,
               fmt::format("{} was wiped while the group was forming: {} has confirmed its old "
                           "directory. Stop all initial members, remove all their directories and "
                           "start again; nothing can be lost, the group never existed",
                           name(peer), name(self_))};
}

void Formation::learned(raft::NodeId peer, raft::Uuid uuid) {
  const auto member = std::find_if(members_.begin(), members_.end(),
                                   [peer](const raft::Member& m) { return m.id == peer; });
  if (member == members_.end()) return;
  if (!confirmed_.members.empty()) {
    // The peer has just become reachable: it may not know.
    if (!formed_ && peer != self_) send(peer);
    return;
  }
  member->uuid = uuid;
  known_.insert(peer);
  if (manner_ == Manner::asks && !proposes() && peer == members_.front().id) send(peer);
  if (all_known() && proposes()) confirm({members_, settings_});
}

// One node chooses, so that nodes that were started with different numbers agree.
bool Formation::proposes() const {
  return members_.front().id == self_;
}

bool Formation::all_known() const {
  return known_.size() == members_.size();
}

void Formation::confirm(InitialSet set) {
  LEASEHOLD_ASSERT(confirmed_.members.empty() && !set.members.empty());
  confirmed_ = std::move(set);
  confirmed_by_ = {self_};
  outputs_.push_back(Confirm{confirmed_});
  repeat();
  maybe_form();
}

/// The same members as here.
bool Formation::fits(const std::vector<raft::Member>& members) const {
  return std::equal(members.begin(), members.end(), members_.begin(), members_.end(),
                    [this](const raft::Member& left, const raft::Member& right) {
                      // Hosts may know each other by other addresses.
                      return left.id == right.id &&
                             (left.address == right.address || manner_ == Manner::asks);
                    });
}

Result<void> Formation::received(raft::NodeId from, const wire::FormationConfirm& message) {
  const raft::Member* sender = find(members_, from);
  if (sender == nullptr || from == self_) return {};
  if (message.members.empty()) {
    if (!confirmed_.members.empty()) send(from);
    return {};
  }
  const raft::Member* me = find(message.members, self_);
  if (me == nullptr || me->uuid != uuid_) {
    if (formed_) return {};  // sent by an earlier directory of the sender: the handshake decides
    return Error{
        ErrorCode::wrong_cluster,
        message.formed
            ? fmt::format("the group exists and knows {} under another uuid: this directory is new "
                          "or not its own. Restore the directory, or remove the node from the "
                          "group and add it again",
                          name(self_))
            : fmt::format("{} has confirmed another directory of {}. Stop all initial members, "
                          "remove all their directories and start again; nothing can be lost, the "
                          "group never existed",
                          name(from), name(self_))};
  }
  if (formed_) {
    if (!message.formed && message.members == confirmed_.members) send(from);
    return {};
  }
  if (confirmed_.members.empty()) {
    if (!fits(message.members) || message.formed) {
      return Error{ErrorCode::wrong_cluster,
                   fmt::format("{} has confirmed a set that {} cannot confirm: its directory was "
                               "rolled back or the members differ. Check --peers on both",
                               name(from), name(self_))};
    }
    // The sender knows all members. That is enough, because each must still confirm for itself.
    confirm({message.members, message.settings});
  }
  if (message.members != confirmed_.members) {
    return Error{
        ErrorCode::wrong_cluster,
        fmt::format("{} and {} have confirmed different sets of directories: one was wiped "
                    "while the group was forming. Stop all initial members, remove all "
                    "their directories and start again; nothing can be lost, the group "
                    "never existed",
                    name(from), name(self_))};
  }
  if (message.settings != confirmed_.settings) {
    return Error{
        ErrorCode::wrong_cluster,
        fmt::format("{} and {} have confirmed different settings of the group: one of them "
                    "runs an earlier build. Form the group with one build: stop all "
                    "initial members, remove all their directories and start again; "
                    "nothing can be lost, the group never existed",
                    name(from), name(self_))};
  }
  confirmed_by_.insert(from);
  if (message.formed) {
    form();
  } else {
    maybe_form();
  }
  return {};
}

void Formation::repeat() {
  if (!repeats()) return;
  for (const raft::Member& member : confirmed_.members) {
    if (member.id != self_) send(member.id);
  }
}

void Formation::send(raft::NodeId to) {
  outputs_.push_back(
      Send{to, wire::FormationConfirm{confirmed_.members, formed_, confirmed_.settings}});
}

void Formation::maybe_form() {
  if (!formed_ && confirmed_by_.size() == confirmed_.members.size()) form();
}

void Formation::form() {
  if (formed_) return;
  formed_ = true;
  outputs_.push_back(Form{});
  for (const raft::Member& member : confirmed_.members) {
    if (member.id != self_) send(member.id);
  }
}

std::vector<Formation::Output> Formation::take_outputs() {
  return std::exchange(outputs_, {});
}

std::vector<raft::NodeId> Formation::missing() const {
  std::vector<raft::NodeId> ids;
  if (formed_) return ids;
  for (const raft::Member& member : members_) {
    if (confirmed_by_.count(member.id) == 0) ids.push_back(member.id);
  }
  return ids;
}

}  // namespace leasehold::node
