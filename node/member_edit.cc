#include <leasehold/node/member_edit.h>

#include <algorithm>
#include <utility>

namespace leasehold::node {

namespace {

using raft::ChangeObstacle;
using raft::ChangeRefused;
using raft::Suffrage;
using raft::WantedMember;
using raft::WantedMembers;

WantedMembers as_wanted(const raft::Membership& now) {
  WantedMembers wanted;
  for (const raft::Member& member : now.members) {
    const bool votes = now.is_voter(member.id);
    wanted.push_back({member.id, member.uuid, member.address,
                      votes ? Suffrage::voter : Suffrage::learner, now.is_witness(member.id)});
  }
  return wanted;
}

bool placed(const MemberEdit& edit) {
  return edit.what == MemberEdit::What::add || edit.what == MemberEdit::What::move;
}

/// Both of one id.
bool contradict(const MemberEdit& a, const MemberEdit& b) {
  using What = MemberEdit::What;
  if (a.what == What::remove || b.what == What::remove) return a.what != b.what;
  if (placed(a) && placed(b)) return a.address != b.address;
  const auto seats = [](What what) { return what == What::promote || what == What::demote; };
  return seats(a.what) && seats(b.what) && a.what != b.what;
}

std::optional<ChangeRefused> add(WantedMembers& wanted, WantedMembers::iterator at,
                                 const MemberEdit& edit) {
  if (at == wanted.end()) {
    wanted.push_back({edit.id, edit.uuid, edit.address, Suffrage::learner, edit.witness});
    return std::nullopt;
  }
  if (at->uuid != edit.uuid) return ChangeRefused{ChangeObstacle::other_uuid, edit.id};
  if (at->address != edit.address) return ChangeRefused{ChangeObstacle::already_member, edit.id};
  if (at->witness != edit.witness) return ChangeRefused{ChangeObstacle::other_kind, edit.id};
  return std::nullopt;
}

std::optional<ChangeRefused> apply(WantedMembers& wanted, const MemberEdit& edit) {
  const auto at = std::find_if(wanted.begin(), wanted.end(),
                               [&edit](const WantedMember& one) { return one.id == edit.id; });
  if (edit.what == MemberEdit::What::add) return add(wanted, at, edit);
  if (at == wanted.end()) return ChangeRefused{ChangeObstacle::not_a_member, edit.id};
  switch (edit.what) {
    case MemberEdit::What::add: break;
    case MemberEdit::What::promote: at->suffrage = Suffrage::voter; break;
    case MemberEdit::What::demote: at->suffrage = Suffrage::learner; break;
    case MemberEdit::What::remove: wanted.erase(at); break;
    case MemberEdit::What::move: at->address = edit.address; break;
  }
  return std::nullopt;
}

}  // namespace

std::optional<raft::NodeId> contradiction(const MemberEdits& edits) {
  for (auto later = edits.begin(); later != edits.end(); ++later) {
    const auto against = [later](const MemberEdit& earlier) {
      return earlier.id == later->id && contradict(earlier, *later);
    };
    if (std::any_of(edits.begin(), later, against)) return later->id;
  }
  return std::nullopt;
}

std::variant<WantedMembers, ChangeRefused> apply_edits(const raft::Membership& now,
                                                       const MemberEdits& edits) {
  if (const auto id = contradiction(edits))
    return ChangeRefused{ChangeObstacle::contradiction, *id};
  WantedMembers wanted = as_wanted(now);
  for (auto edit = edits.begin(); edit != edits.end(); ++edit) {
    if (std::find(edits.begin(), edit, *edit) != edit) continue;  // named twice, done once
    if (const auto refused = apply(wanted, *edit)) return *refused;
  }
  return wanted;
}

MembersResult members_refused(const ChangeRefused& refused, raft::NodeId leader) {
  MembersResult result;
  result.status = replica::GroupCallStatus::refused;
  result.refused = refused;
  result.retryable = raft::passes_by_itself(refused.obstacle);
  result.reason = raft::text_of(refused);
  result.leader = leader;
  return result;
}

MembersResult members_result(const replica::ChangeResult& result) {
  if (result.status == replica::GroupCallStatus::refused) {
    return members_refused(result.refused.value_or(ChangeRefused{}), result.leader);
  }
  MembersResult told;
  told.status = result.status;
  told.leader = result.leader;
  if (result.status != replica::GroupCallStatus::done) {
    told.reason =
        "the change was begun, and its end is not known: it may still be made; look at the members";
  }
  return told;
}

}  // namespace leasehold::node
