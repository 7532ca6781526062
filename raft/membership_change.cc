#include <leasehold/base/assert.h>
#include <leasehold/raft/membership_change.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

namespace leasehold::raft {
namespace {

bool is_address(const std::string& text) {
  return !text.empty() && text.size() <= kMemberAddressMax &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// What is wrong with the list, whatever the group is like now.
std::optional<ChangeRefused> judge_list(const WantedMembers& wanted) {
  std::set<NodeId> ids;
  std::set<Uuid> uuids;
  std::set<std::string> addresses;
  bool votes = false;
  bool full_voter = false;
  for (const WantedMember& member : wanted) {
    if (member.id == kNobody || member.uuid == Uuid{} || !is_address(member.address)) {
      return ChangeRefused{ChangeObstacle::invalid_member, member.id};
    }
    const bool added = ids.insert(member.id).second && uuids.insert(member.uuid).second &&
                       addresses.insert(member.address).second;
    if (!added) return ChangeRefused{ChangeObstacle::duplicate, member.id};
    if (member.suffrage != Suffrage::voter) continue;
    votes = true;
    full_voter = full_voter || !member.witness;
  }
  if (!votes) return ChangeRefused{ChangeObstacle::no_voter};
  if (!full_voter) return ChangeRefused{ChangeObstacle::no_full_voter};
  return std::nullopt;
}

void sort_by_id(std::vector<Member>& members) {
  std::sort(members.begin(), members.end(),
            [](const Member& a, const Member& b) { return a.id < b.id; });
}

}  // namespace

std::variant<Membership, ChangeRefused> plan_change(const Membership& newest,
                                                    const WantedMembers& wanted) {
  LEASEHOLD_ASSERT(!newest.joint());
  if (const auto wrong = judge_list(wanted)) return *wrong;
  Membership next;
  for (const WantedMember& member : wanted) {
    const Member* now = newest.find(member.id);
    if (now != nullptr && now->uuid != member.uuid) {
      return ChangeRefused{ChangeObstacle::other_uuid, member.id};
    }
    if (now != nullptr && newest.is_witness(member.id) != member.witness) {
      return ChangeRefused{ChangeObstacle::other_kind, member.id};
    }
    if (member.witness) next.witnesses.push_back(member.id);
    if (member.suffrage == Suffrage::voter) {
      if (now == nullptr) return ChangeRefused{ChangeObstacle::not_a_learner, member.id};
      next.voters.push_back(member.id);
    }
    next.members.push_back({member.id, member.uuid, member.address});
  }
  sort_by_id(next.members);
  std::sort(next.voters.begin(), next.voters.end());
  std::sort(next.witnesses.begin(), next.witnesses.end());
  next.settings = newest.settings;
  if (next == newest) return ChangeRefused{ChangeObstacle::already_so};
  if (next.voters != newest.voters) {
    next.outgoing_voters = newest.voters;
    for (const NodeId voter : newest.voters) {
      if (next.find(voter) != nullptr) continue;
      next.leaving.push_back(voter);
    }
    for (const NodeId voter : next.leaving) {
      next.members.push_back(*newest.find(voter));
      if (newest.is_witness(voter)) next.witnesses.push_back(voter);
    }
    sort_by_id(next.members);
    std::sort(next.witnesses.begin(), next.witnesses.end());
  }
  if (next.members.size() > kMembersMax) return ChangeRefused{ChangeObstacle::too_many};
  LEASEHOLD_ASSERT(!next.voters.empty());
  LEASEHOLD_ASSERT(may_follow(newest, next));
  return next;
}

std::vector<NodeId> promoted(const Membership& before, const Membership& next) {
  std::vector<NodeId> ids;
  std::set_difference(next.voters.begin(), next.voters.end(), before.voters.begin(),
                      before.voters.end(), std::back_inserter(ids));
  return ids;
}

Membership without_outgoing(const Membership& joint) {
  LEASEHOLD_ASSERT(joint.joint());
  Membership next;
  next.voters = joint.voters;
  next.settings = joint.settings;
  for (const Member& member : joint.members) {
    if (std::binary_search(joint.leaving.begin(), joint.leaving.end(), member.id)) continue;
    next.members.push_back(member);
    if (joint.is_witness(member.id)) next.witnesses.push_back(member.id);
  }
  LEASEHOLD_ASSERT(!next.joint());
  LEASEHOLD_ASSERT(next.members.size() + joint.leaving.size() == joint.members.size());
  return next;
}

Membership with_settings(const Membership& newest, const GroupSettings& settings) {
  LEASEHOLD_ASSERT(!newest.joint());
  Membership next = newest;
  next.settings = settings;
  LEASEHOLD_ASSERT(may_follow(newest, next));
  return next;
}

ChangeRefused membership_changed(const Membership& newest) {
  ChangeRefused refused{ChangeObstacle::membership_changed};
  refused.in_effect = newest;
  return refused;
}

bool may_follow(const Membership& before, const Membership& next) {
  if (before.settings != next.settings) {
    if (!next.settings || before.joint()) return false;
    Membership same = before;
    same.settings = next.settings;
    return next == same;
  }
  for (const Member& member : next.members) {
    const Member* earlier = before.find(member.id);
    if (earlier == nullptr) continue;
    if (earlier->uuid != member.uuid) return false;
    if (before.is_witness(member.id) != next.is_witness(member.id)) return false;
  }
  if (before.joint()) return next == without_outgoing(before);
  if (next.joint()) return next.outgoing_voters == before.voters;
  return next.voters == before.voters;
}

namespace {

std::string text_of_changed(const ChangeRefused& refused) {
  const Membership newest = refused.in_effect.value_or(Membership{});
  std::string voters;
  for (const NodeId id : newest.voters) {
    voters += (voters.empty() ? "" : ", ") + std::to_string(id.value());
  }
  return "the members or the settings are not those that were expected: in effect is membership " +
         text_of(id_of(newest)) + ", with the voters " + voters +
         "; look at the members again, and ask again if the change is still wanted";
}

}  // namespace

std::string text_of(const ChangeRefused& refused) {
  const std::string node = "node " + std::to_string(refused.member.value());
  switch (refused.obstacle) {
    case ChangeObstacle::not_leader:
      return "this node does not lead; ask " +
             (refused.member == kNobody ? std::string("again when a leader is known") : node);
    case ChangeObstacle::transfer_under_way:
      return "the leadership is being transferred; ask the next leader";
    case ChangeObstacle::change_under_way:
      return "an earlier change of the members is not complete; wait for it and ask again";
    case ChangeObstacle::leader_is_new:
      return "the leader has just been elected and has committed nothing yet; ask again";
    case ChangeObstacle::already_so: return "the group has exactly these members already";
    case ChangeObstacle::no_voter:
      return "there would be no voter; keep at least one, better three or five";
    case ChangeObstacle::no_full_voter:
      return "only witnesses would vote, and they keep no state and answer no calls; keep at least "
             "one voter that is not a witness, better two";
    case ChangeObstacle::too_many:
      return "a group has at most " + std::to_string(kMembersMax) +
             " members, those included that leave with this change; remove some first";
    case ChangeObstacle::invalid_member:
      return node + " has no id, no uuid, or no address of 1 to " +
             std::to_string(kMemberAddressMax) + " printable characters; correct it";
    case ChangeObstacle::duplicate:
      return node + " has the id, the uuid or the address of another member; give it its own";
    case ChangeObstacle::other_uuid:
      return node +
             " is a member under another uuid: its directory was wiped or replaced. Remove it from "
             "the group and add it again as a new member";
    case ChangeObstacle::other_kind:
      return node +
             " cannot become a witness, or stop being one: its directory does not hold what it "
             "would need. Remove it from the group and add it again with an empty directory";
    case ChangeObstacle::not_a_learner:
      return node + " is not a member yet; add it as a learner first, and let it catch up";
    case ChangeObstacle::learner_behind:
      return node + " lacks " + std::to_string(refused.entries_behind) +
             " entries, or waits for a snapshot, or has not answered lately; promote it when it "
             "has caught up";
    case ChangeObstacle::not_a_member:
      return node + " is not a member of this group; see the list of the members";
    case ChangeObstacle::already_member:
      return node + " is a member already, at another address; move it, or choose another id";
    case ChangeObstacle::no_answer:
      return node + " does not answer at its address; start it first, so that it waits to be added";
    case ChangeObstacle::too_late: return "the time for the change was over before it was begun";
    case ChangeObstacle::contradiction:
      return node +
             " is named more than once, with changes that contradict each other. Name it once, "
             "or make one change after the other: to give a member an empty directory under the "
             "same number, remove it first and then add it";
    case ChangeObstacle::older_build:
      return node +
             " runs a build that cannot read the settings of this group, and would stop at their "
             "entry; upgrade it first";
    case ChangeObstacle::membership_changed: return text_of_changed(refused);
  }
  LEASEHOLD_UNREACHABLE();
}

bool passes_by_itself(ChangeObstacle obstacle) {
  switch (obstacle) {
    case ChangeObstacle::not_leader:
    case ChangeObstacle::transfer_under_way:
    case ChangeObstacle::change_under_way:
    case ChangeObstacle::leader_is_new:
    case ChangeObstacle::learner_behind:
    case ChangeObstacle::no_answer:
    case ChangeObstacle::too_late: return true;
    case ChangeObstacle::already_so:
    case ChangeObstacle::no_voter:
    case ChangeObstacle::no_full_voter:
    case ChangeObstacle::too_many:
    case ChangeObstacle::invalid_member:
    case ChangeObstacle::duplicate:
    case ChangeObstacle::other_uuid:
    case ChangeObstacle::other_kind:
    case ChangeObstacle::not_a_learner:
    case ChangeObstacle::not_a_member:
    case ChangeObstacle::already_member:
    case ChangeObstacle::contradiction:
    case ChangeObstacle::older_build:
    case ChangeObstacle::membership_changed: return false;
  }
  LEASEHOLD_UNREACHABLE();
}

}  // namespace leasehold::raft
