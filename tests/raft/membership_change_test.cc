// The plan of a change, as a table, and a proof that two neighbours in a log never have quorums
// without a common voter.

#include <leasehold/base/random.h>
#include <leasehold/raft/membership_change.h>
#include <leasehold/raft/quorum.h>

#include <gtest/gtest.h>

#include <string>

namespace leasehold::raft {
namespace {

Uuid uuid(std::uint64_t id) {
  return {id, 100 + id};
}

WantedMember wanted(std::uint64_t id, Suffrage suffrage) {
  return {NodeId(id), uuid(id), "host" + std::to_string(id) + ":1", suffrage};
}

/// "1 2 3/4": 1, 2 and 3 vote, 4 learns.
WantedMembers parse(const std::string& text) {
  WantedMembers members;
  Suffrage suffrage = Suffrage::voter;
  for (const char c : text) {
    if (c == '/') suffrage = Suffrage::learner;
    if (c >= '0' && c <= '9')
      members.push_back(wanted(static_cast<std::uint64_t>(c - '0'), suffrage));
  }
  return members;
}

Membership plain(const std::string& text) {
  Membership membership;
  for (const WantedMember& member : parse(text)) {
    membership.members.push_back({member.id, member.uuid, member.address});
    if (member.suffrage == Suffrage::voter) membership.voters.push_back(member.id);
  }
  return membership;
}

std::string list(const std::vector<NodeId>& ids) {
  std::string text;
  for (const NodeId id : ids) text += (text.empty() ? "" : " ") + std::to_string(id.value());
  return text;
}

/// "voters=1 2 outgoing=.. members=.. leaving=..", or the obstacle's number and node.
std::string show(const std::variant<Membership, ChangeRefused>& plan) {
  if (const auto* refused = std::get_if<ChangeRefused>(&plan)) {
    return "refused " + std::to_string(static_cast<int>(refused->obstacle)) + " node " +
           std::to_string(refused->member.value());
  }
  const Membership& m = std::get<Membership>(plan);
  std::vector<NodeId> members;
  for (const Member& member : m.members) members.push_back(member.id);
  std::string text = "(" + list(m.voters) + ")";
  if (m.joint()) text += "&(" + list(m.outgoing_voters) + ")";
  text += " of " + list(members);
  if (!m.leaving.empty()) text += " without " + list(m.leaving);
  return text;
}

std::string refused(ChangeObstacle obstacle, std::uint64_t node) {
  return show(ChangeRefused{obstacle, NodeId(node)});
}

struct Row {
  const char* newest;
  const char* wanted;
  std::string plan;
  const char* after;  ///< the joint state, if the plan has one
};

TEST(MembershipChange, Plans) {
  const Row rows[] = {
      // The voters stay: one entry.
      {"1 2 3", "1 2 3/4", "(1 2 3) of 1 2 3 4", ""},
      {"1 2 3/4 5", "1 2 3/5", "(1 2 3) of 1 2 3 5", ""},
      {"1/2", "1", "(1) of 1", ""},
      // A voter more, one less, one for another, all for others.
      {"1/2", "1 2", "(1 2)&(1) of 1 2", "(1 2) of 1 2"},
      {"1 2", "1", "(1)&(1 2) of 1 2 without 2", "(1) of 1"},
      {"1 2 3", "2 3", "(2 3)&(1 2 3) of 1 2 3 without 1", "(2 3) of 2 3"},
      {"1 2 3/4", "2 3 4", "(2 3 4)&(1 2 3) of 1 2 3 4 without 1", "(2 3 4) of 2 3 4"},
      {"1 2 3/4 5 6", "4 5 6", "(4 5 6)&(1 2 3) of 1 2 3 4 5 6 without 1 2 3", "(4 5 6) of 4 5 6"},
      // A voter becomes a learner, and the other way round, at once.
      {"1 2 3/4", "1 2 4/3", "(1 2 4)&(1 2 3) of 1 2 3 4", "(1 2 4) of 1 2 3 4"},
      {"1 2 3", "1/2 3", "(1)&(1 2 3) of 1 2 3", "(1) of 1 2 3"},
      // Learners come and go with the first entry.
      {"1 2/3", "1/4", "(1)&(1 2) of 1 2 4 without 2", "(1) of 1 4"},
      // Refused.
      {"1 2 3", "1 2 3", refused(ChangeObstacle::already_so, 0), ""},
      {"1 2 3", "3 1 2", refused(ChangeObstacle::already_so, 0), ""},
      {"1 2 3", "", refused(ChangeObstacle::no_voter, 0), ""},
      {"1 2 3", "/1 2 3", refused(ChangeObstacle::no_voter, 0), ""},
      {"1 2 3", "1 2 3 4", refused(ChangeObstacle::not_a_learner, 4), ""},
      {"1 2 3", "1 2 3/3", refused(ChangeObstacle::duplicate, 3), ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(row.newest) + " -> " + row.wanted);
    const Membership newest = plain(row.newest);
    const auto plan = plan_change(newest, parse(row.wanted));
    EXPECT_EQ(show(plan), row.plan);
    const auto* next = std::get_if<Membership>(&plan);
    if (next == nullptr) continue;
    EXPECT_TRUE(may_follow(newest, *next));
    EXPECT_EQ(decode_membership(encode_membership(*next).view()).value(), *next);
    ASSERT_EQ(next->joint(), *row.after != '\0');
    if (!next->joint()) continue;
    const Membership after = without_outgoing(*next);
    EXPECT_EQ(show(after), row.after);
    EXPECT_TRUE(may_follow(*next, after));
  }
}

TEST(MembershipChange, RefusesInvalidMembers) {
  const Membership newest = plain("1 2 3");
  const auto with = [&newest](WantedMember member) {
    WantedMembers members = parse("1 2 3");
    members.push_back(std::move(member));
    return show(plan_change(newest, members));
  };
  WantedMember member = wanted(4, Suffrage::learner);
  EXPECT_EQ(with(member), "(1 2 3) of 1 2 3 4");
  member.address = "";
  EXPECT_EQ(with(member), refused(ChangeObstacle::invalid_member, 4));
  member.address = "a b";
  EXPECT_EQ(with(member), refused(ChangeObstacle::invalid_member, 4));
  member.address = std::string(kMemberAddressMax + 1, 'x');
  EXPECT_EQ(with(member), refused(ChangeObstacle::invalid_member, 4));
  member.address = "host1:1";
  EXPECT_EQ(with(member), refused(ChangeObstacle::duplicate, 4));
  member = wanted(4, Suffrage::learner);
  member.uuid = Uuid{};
  EXPECT_EQ(with(member), refused(ChangeObstacle::invalid_member, 4));
  member.uuid = uuid(1);
  EXPECT_EQ(with(member), refused(ChangeObstacle::duplicate, 4));
  member = wanted(0, Suffrage::learner);
  member.uuid = uuid(4);
  EXPECT_EQ(with(member), refused(ChangeObstacle::invalid_member, 0));
}

TEST(MembershipChange, AMemberNeverChangesItsUuid) {
  WantedMembers members = parse("1 2 3/4");
  members[3].uuid = Uuid{9, 9};
  EXPECT_EQ(show(plan_change(plain("1 2 3/4"), members)), refused(ChangeObstacle::other_uuid, 4));
  Membership other = plain("1 2 3/4");
  other.members[3].uuid = Uuid{9, 9};
  EXPECT_FALSE(may_follow(plain("1 2 3/4"), other));
}

TEST(MembershipChange, AnAddressMayChange) {
  WantedMembers members = parse("1 2 3");
  members[1].address = "elsewhere:1";
  const auto plan = plan_change(plain("1 2 3"), members);
  ASSERT_TRUE(std::holds_alternative<Membership>(plan));
  EXPECT_FALSE(std::get<Membership>(plan).joint());
  EXPECT_EQ(std::get<Membership>(plan).find(NodeId(2))->address, "elsewhere:1");
}

TEST(MembershipChange, TheNumberOfMembersIsBounded) {
  Membership newest;
  WantedMembers members;
  for (std::uint64_t id = 1; id <= kMembersMax; ++id) {
    members.push_back(wanted(id, id == 1 ? Suffrage::voter : Suffrage::learner));
    newest.members.push_back({NodeId(id), uuid(id), members.back().address});
  }
  newest.voters.emplace_back(1);
  members.push_back(wanted(kMembersMax + 1, Suffrage::learner));
  EXPECT_EQ(show(plan_change(newest, members)), refused(ChangeObstacle::too_many, 0));
  // One goes, but it has to vote until the joint state is left.
  members.erase(members.begin());
  members.front().suffrage = Suffrage::voter;
  EXPECT_EQ(show(plan_change(newest, members)), refused(ChangeObstacle::too_many, 0));
}

TEST(MembershipChange, WhichMembershipsMayFollow) {
  Membership joint = plain("1 2 3 4");
  joint.outgoing_voters = plain("1 2 3").voters;
  EXPECT_TRUE(may_follow(plain("1 2 3/4"), joint));
  EXPECT_FALSE(may_follow(plain("1 2/3 4"), joint));
  EXPECT_FALSE(may_follow(plain("1 2 3/4"), plain("1 2 3 4"))) << "voters change by two entries";
  EXPECT_FALSE(may_follow(joint, joint));
  EXPECT_TRUE(may_follow(joint, plain("1 2 3 4")));
  EXPECT_FALSE(may_follow(joint, plain("1 2 3"))) << "there is no way back";
}

/// Every set of voters that is a quorum of `membership`, as a bit mask.
std::vector<unsigned> quorums(const Membership& membership) {
  std::vector<unsigned> found;
  for (unsigned set = 0; set < (1U << 7U); ++set) {
    const auto in = [set](NodeId id) {
      return (set >> id.value() & 1U) != 0 ? std::optional<int>(1) : std::nullopt;
    };
    if (quorum_value<int>(membership, in)) found.push_back(set);
  }
  return found;
}

TEST(MembershipChange, NoTwoNeighboursHaveDisjointQuorums) {
  Random random(5);
  Membership now = plain("1 2 3");
  int joints = 0;
  for (int step = 0; step < 2000; ++step) {
    WantedMembers members;
    for (std::uint64_t id = 1; id <= 6; ++id) {
      if (!random.chance(2, 3)) continue;
      const bool votes = now.find(NodeId(id)) != nullptr && random.chance(2, 3);
      members.push_back(wanted(id, votes ? Suffrage::voter : Suffrage::learner));
    }
    const auto plan = plan_change(now, members);
    const auto* next = std::get_if<Membership>(&plan);
    if (next == nullptr) continue;
    std::vector<Membership> line = {now, *next};
    if (next->joint()) line.push_back(without_outgoing(*next));
    joints += next->joint() ? 1 : 0;
    for (std::size_t i = 1; i < line.size(); ++i) {
      ASSERT_TRUE(may_follow(line[i - 1], line[i]));
      for (const unsigned a : quorums(line[i - 1])) {
        for (const unsigned b : quorums(line[i])) ASSERT_NE(a & b, 0U);
      }
    }
    now = line.back();
    WantedMembers same;
    for (const Member& member : now.members) {
      const bool votes = now.is_voter(member.id);
      same.push_back(
          {member.id, member.uuid, member.address, votes ? Suffrage::voter : Suffrage::learner});
    }
    ASSERT_EQ(show(plan_change(now, same)), refused(ChangeObstacle::already_so, 0));
  }
  EXPECT_GT(joints, 300);
}

TEST(MembershipChange, EveryRefusalSaysWhatToDo) {
  for (int i = 0; i <= static_cast<int>(ChangeObstacle::learner_behind); ++i) {
    const std::string text = text_of({static_cast<ChangeObstacle>(i), NodeId(7), 12});
    EXPECT_GT(text.size(), 30U) << text;
  }
}

}  // namespace
}  // namespace leasehold::raft
