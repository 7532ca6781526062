#include <leasehold/base/assert.h>
#include <leasehold/net/handshake.h>
#include <leasehold/node/node_members.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace leasehold::node {

namespace {

/// How long a removed node still runs: its last messages leave, and a node that catches up may pass
/// older memberships that did not name it. Begins when it leads no more: a removed leader stays
/// until a full voter can follow it.
constexpr lease::Duration kFarewell = std::chrono::seconds(1);

std::string name(raft::NodeId id) {
  return fmt::format("node {}", id.value());
}

std::string entry(raft::LogId place) {
  return fmt::format("entry {}", place.index.value());
}

wire::Refusal refusal(wire::RefusalCode code, std::string reason) {
  return wire::Refusal{code, std::move(reason), wire::VersionRange{}};
}

wire::Refusal removed_since(raft::NodeId peer, raft::LogId place) {
  wire::Refusal told =
      refusal(wire::RefusalCode::removed,
              fmt::format("{} is not a member of the group as of {}", name(peer), entry(place)));
  told.membership = place;
  return told;
}

const char* kind(bool witness) {
  return witness ? "a witness" : "a member with a state machine";
}

std::string wiped_text(raft::NodeId peer) {
  return fmt::format(
      "node {0} is a member under another uuid: its directory was wiped or replaced. Remove it "
      "from the group and add it again as a new member: leasehold member remove {0}, then "
      "leasehold member add {0}=HOST:PORT",
      peer.value());
}

}  // namespace

raft::LogId membership_place(const raft::Core& core) {
  const raft::Index index = core.log().membership_index();
  return {core.log().term_at(index).value_or(raft::Term(0)), index};
}

Members::Members(Self self, Links& links, std::function<void(replica::Event)> feed,
                 std::function<void(const std::string&)> notice)
    : self_(std::move(self)), links_(links), feed_(std::move(feed)), notice_(std::move(notice)) {}

bool Members::names_self(const raft::Membership& membership) const {
  const raft::Member* self = membership.find(self_.id);
  return self != nullptr && self->uuid == self_.uuid;
}

// ---- Which nodes it dials ----

void Members::look(const raft::Core& core, lease::Now now) {
  core_ = &core;
  const raft::LogId place = membership_place(core);
  const raft::Membership& newest = core.membership();
  const bool settled = !newest.joint() && place.index <= core.commit_index();
  const bool leads = core.role() == raft::Role::leader;
  if (!removed_.empty()) dismiss_removed(newest, now);
  if (place_ == place && settled_ == settled && leads_ == leads) return;
  place_ = place;
  settled_ = settled;
  leads_ = leads;
  follow(core, place, settled, now);
  // After a restart the last membership that names this node may be the one before, or the one at
  // the log's base.
  const raft::Log& log = core.log();
  was_member_ = was_member_ || names_self(newest) ||
                names_self(log.membership_at(place.index.prev())) ||
                names_self(log.membership_at(log.base().index));
  seated_ = names_self(newest) &&
            !std::binary_search(newest.leaving.begin(), newest.leaving.end(), self_.id);
  check_kind(newest);
  if (names_self(newest)) {
    leaves_at_ = raft::PromiseInstant::never();
  } else if (settled && was_member_ && !leads) {
    leave(now, place, "");
  }
}

/// Other nodes rely on a full member for the state, and send a witness no state.
void Members::check_kind(const raft::Membership& newest) {
  const bool witness = newest.is_witness(self_.id);
  if (!names_self(newest) || witness == self_.witness || other_kind_) return;
  other_kind_ = Error{ErrorCode::invalid_argument,
                      fmt::format("the group has {} as {}, and it runs as {}. Start it as what it "
                                  "was added as, or remove it and add it again with an empty "
                                  "directory",
                                  name(self_.id), kind(witness), kind(self_.witness))};
}

void Members::follow(const raft::Core& core, raft::LogId place, bool settled, lease::Now now) {
  const raft::Membership& newest = core.membership();
  const raft::Member* self = newest.find(self_.id);
  links_.describe(names_self(newest) ? self->address : self_.address, place);
  for (const raft::Member& member : newest.members) {
    links_.set_peer({member.id, member.address});
  }
  // An empty membership: this node waits to be added, and talks to every node that talks to it.
  if (!settled || newest.members.empty()) return;
  for (const net::PeerAddress& peer : links_.peers()) {
    if (newest.find(peer.id) == nullptr) removed_.try_emplace(peer.id, now.promise + kFarewell);
  }
}

void Members::dismiss_removed(const raft::Membership& newest, lease::Now now) {
  for (auto peer = removed_.begin(); peer != removed_.end();) {
    const bool back = newest.find(peer->first) != nullptr;
    if (!back && peer->second > now.promise) {
      ++peer;
      continue;
    }
    // A peer that knows a newer membership than this node may be a member again.
    const auto known = links_.known_membership(peer->first);
    if (!back && !(known && *known > *place_)) {
      links_.dismiss_peer(peer->first, removed_since(peer->first, *place_));
    }
    peer = removed_.erase(peer);
  }
}

raft::PromiseInstant Members::due() const {
  raft::PromiseInstant due = leaves_at_;
  for (const auto& [id, at] : removed_) due = std::min(due, at);
  return due;
}

// ---- Who may talk to it ----

/// A voter under another uuid than the membership names neither votes nor counts: it may have
/// forgotten what it promised.
Result<void> Members::accept_peer(const raft::Core& core, raft::NodeId peer,
                                  raft::Uuid uuid) const {
  const raft::Member* member = core.membership().find(peer);
  if (member == nullptr || member->uuid == uuid) return {};
  return Error{ErrorCode::wrong_cluster, wiped_text(peer)};
}

std::optional<wire::Refusal> Members::judge_stranger(const raft::Core* core,
                                                     const wire::Hello& hello) const {
  if (core == nullptr) {
    return refusal(wire::RefusalCode::unknown_peer,
                   fmt::format("{} is not among the initial members of {}, whose group has not "
                               "formed",
                               name(hello.from), name(self_.id)));
  }
  const raft::LogId place = membership_place(*core);
  if (hello.membership > place) return std::nullopt;
  const raft::Membership& newest = core->membership();
  if (newest.find(hello.from) != nullptr) return std::nullopt;
  const bool settled = !newest.joint() && place.index <= core->commit_index();
  if (settled && !newest.members.empty()) return removed_since(hello.from, place);
  return refusal(wire::RefusalCode::unknown_peer, fmt::format("{} does not know {} as a member yet",
                                                              name(self_.id), name(hello.from)));
}

std::optional<wire::Refusal> Members::judge_introduction(const raft::Core* core,
                                                         const wire::Hello& hello) const {
  // A sender that knows the cluster's id is a member that is about to add this node.
  if (hello.cluster_id != 0) return std::nullopt;
  if (core == nullptr || core->membership().members.empty()) {
    return refusal(wire::RefusalCode::refused_by_node,
                   name(self_.id) + " is in no group yet itself");
  }
  const raft::Member* member = core->membership().find(hello.from);
  if (member == nullptr || member->uuid == hello.uuid) return std::nullopt;
  return refusal(wire::RefusalCode::refused_by_node, wiped_text(hello.from));
}

// ---- The end of a member ----

void Members::told_removed(const raft::Core& core, const net::Rejection& rejection,
                           lease::Now now) {
  // This node was never a member, or was added again since: the peer is behind.
  if (!was_member_ || membership_place(core) > rejection.membership) return;
  leave(now, rejection.membership, fmt::format(", says {}", name(rejection.peer)));
}

void Members::leave(lease::Now now, raft::LogId place, const std::string& who) {
  if (leaves_at_ != raft::PromiseInstant::never()) return;
  seated_ = false;
  leaves_at_ = now.promise + kFarewell;
  farewell_ = fmt::format(
      "{} was removed from the group with {}{}. It stops, and does not come back by itself: to "
      "make it a member again, give it an empty directory, start it with --join, and run leasehold "
      "member add",
      name(self_.id), entry(place), who);
}

std::optional<Error> Members::gone(lease::Now now) const {
  if (other_kind_) return other_kind_;
  if (leaves_at_ > now.promise) return std::nullopt;
  return Error{ErrorCode::removed, farewell_};
}

// ---- Changes ----

void Members::change(const raft::Core* core, Call call) {
  const MembersCompletion& done = call.done;
  if (core == nullptr || core->role() != raft::Role::leader) {
    const raft::NodeId leader = core != nullptr ? core->leader() : raft::kNobody;
    return done(members_refused({raft::ChangeObstacle::not_leader, leader}, leader));
  }
  core_ = core;
  if (const auto changed = unexpected(call.expected)) {
    return done(members_refused(*changed, core->leader()));
  }
  if (const auto id = contradiction(call.edits)) {
    return done(members_refused({raft::ChangeObstacle::contradiction, *id}, core->leader()));
  }
  for (const MemberEdit& edit : call.edits) {
    const bool placed = edit.what == MemberEdit::What::add || edit.what == MemberEdit::What::move;
    if (!placed || net::parse_address(edit.address).ok()) continue;
    MembersResult result =
        members_refused({raft::ChangeObstacle::invalid_member, edit.id}, core->leader());
    result.reason = net::parse_address(edit.address).error().message;
    return done(std::move(result));
  }
  const auto change = std::make_shared<Change>(Change{std::move(call)});
  changes_.push_back(change);
  for (std::size_t i = 0; i < change->edits.size(); ++i) ask_uuid(change, i);
  if (change->asking == 0) submit(change);
}

void Members::ask_uuid(const std::shared_ptr<Change>& change, std::size_t edit) {
  const MemberEdit& added = change->edits[edit];
  if (added.what != MemberEdit::What::add || added.uuid != raft::Uuid{}) return;
  ++change->asking;
  links_.introduce(added, [this, change, edit](Result<wire::Hello> answer) {
    learned(change, edit, std::move(answer));
  });
}

void Members::learned(const std::shared_ptr<Change>& change, std::size_t edit,
                      Result<wire::Hello> answer) {
  if (!change->done) return;
  if (!answer.ok()) {
    MembersResult result =
        members_refused({raft::ChangeObstacle::no_answer, change->edits[edit].id}, core_->leader());
    const MemberEdit& unknown = change->edits[edit];
    // The same text whatever is at the address: otherwise a caller could ask this node what listens
    // in its network.
    result.reason = fmt::format(
        "no node {0} that waits to be added answers at {1}; the leader's log says why. Start it "
        "first: leasehold serve --id {0} --join with the address of a member",
        unknown.id.value(), unknown.address);
    notice_(fmt::format("node {} was not added: {}", unknown.id.value(), answer.error().message));
    return finish(change, std::move(result));
  }
  const MemberEdit& added = change->edits[edit];
  if (answer.value().witness != added.witness) {
    MembersResult result =
        members_refused({raft::ChangeObstacle::other_kind, added.id}, core_->leader());
    result.reason = fmt::format(
        "{} runs as {}, and is to be added as {}. Give --witness both where "
        "it is started and where it is added, or nowhere",
        name(added.id), kind(!added.witness), kind(added.witness));
    return finish(change, std::move(result));
  }
  if (core_->membership().settings && answer.value().versions.max < wire::kSettingsVersion) {
    return finish(change,
                  members_refused({raft::ChangeObstacle::older_build, added.id}, core_->leader()));
  }
  change->edits[edit].uuid = answer.value().uuid;
  if (--change->asking == 0) submit(change);
}

void Members::submit(const std::shared_ptr<Change>& change) {
  const raft::Membership& newest = core_->membership();
  const raft::NodeId leader = core_->leader();
  if (core_->role() != raft::Role::leader) {
    return finish(change, members_refused({raft::ChangeObstacle::not_leader, leader}, leader));
  }
  // Other changes may have come in while nodes were asked for their uuids.
  if (const auto changed = unexpected(change->expected)) {
    return finish(change, members_refused(*changed, leader));
  }
  if (newest.joint() || core_->log().membership_index() > core_->commit_index()) {
    return finish(change, members_refused({raft::ChangeObstacle::change_under_way}, leader));
  }
  if (const auto older = older_build(change->edits)) {
    return finish(change, members_refused({raft::ChangeObstacle::older_build, *older}, leader));
  }
  auto wanted = apply_edits(newest, change->edits);
  if (const auto* refused = std::get_if<raft::ChangeRefused>(&wanted)) {
    return finish(change, members_refused(*refused, leader));
  }
  // From here on the driver answers. No other change can come in between: the core accepts one only
  // when the newest membership is committed.
  replica::ChangeMembers event;
  event.wanted = std::move(*std::get_if<raft::WantedMembers>(&wanted));
  event.expected = change->expected;
  event.deadline = change->deadline;
  event.group = change->group;
  event.done = [done = std::exchange(change->done, nullptr)](const replica::ChangeResult& result) {
    done(members_result(result));
  };
  changes_.erase(std::remove(changes_.begin(), changes_.end(), change), changes_.end());
  feed_(std::move(event));
}

std::optional<raft::ChangeRefused> Members::unexpected(
    std::optional<raft::MembershipId> expected) const {
  const raft::Membership& newest = core_->membership();
  if (!expected || *expected == raft::id_of(newest)) return std::nullopt;
  return raft::membership_changed(newest);
}

// Of those that are to vote: one that was downgraded, or added under a uuid that the caller knew.
std::optional<raft::NodeId> Members::older_build(const MemberEdits& edits) const {
  if (!core_->membership().settings) return std::nullopt;
  for (const MemberEdit& edit : edits) {
    if (edit.what != MemberEdit::What::promote) continue;
    const auto spoken = links_.wire_version(edit.id);
    if (spoken && *spoken < wire::kSettingsVersion) return edit.id;
  }
  return std::nullopt;
}

void Members::finish(const std::shared_ptr<Change>& change, MembersResult result) {
  changes_.erase(std::remove(changes_.begin(), changes_.end(), change), changes_.end());
  std::exchange(change->done, nullptr)(std::move(result));
}

void Members::complete_all() {
  for (const auto& change : std::vector<std::shared_ptr<Change>>(changes_)) {
    finish(change, members_refused({raft::ChangeObstacle::not_leader}, raft::kNobody));
  }
}

// ---- What people see ----

void Members::describe(const raft::Core& core, NodeStatus& status) const {
  const raft::Membership& newest = core.membership();
  status.joining = newest.members.empty();
  if (status.joining) status.formed = false;
  const raft::Member* self = newest.find(self_.id);
  status.address = names_self(newest) ? self->address : self_.address;
  status.membership = membership_place(core);
  status.membership_id = raft::id_of(newest);
  status.membership_joint = newest.joint();
  status.membership_committed = status.membership.index <= core.commit_index();
  for (const raft::Member& member : newest.members) {
    MemberStatus shown;
    shown.id = member.id;
    shown.uuid = member.uuid;
    shown.address = member.address;
    shown.voter = newest.is_voter(member.id);
    shown.witness = newest.is_witness(member.id);
    shown.leaving = std::binary_search(newest.leaving.begin(), newest.leaving.end(), member.id);
    shown.connected = member.id == self_.id || links_.connected(member.id);
    shown.proofs = links_.proofs(member.id);
    if (core.role() == raft::Role::leader) {
      const auto progress = core.progress().find(member.id);
      if (member.id == self_.id) shown.match = core.durable_index();
      if (progress != core.progress().end()) shown.match = progress->second.match_index;
    }
    status.members.push_back(std::move(shown));
  }
}

}  // namespace leasehold::node
