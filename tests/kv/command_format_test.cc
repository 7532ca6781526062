// The bytes that are in every log. They never change for format 1.
#include <leasehold/kv/command.h>

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace leasehold::kv {
namespace {

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto value = static_cast<unsigned char>(c);
    out.push_back("0123456789abcdef"[value >> 4U]);
    out.push_back("0123456789abcdef"[value & 15U]);
  }
  return out;
}

std::string encoded(const Command& command) {
  const auto bytes = encode_command(command);
  EXPECT_TRUE(bytes) << bytes.error().message;
  return std::string(bytes.value().view());
}

TEST(CommandFormat, SetIsPinned) {
  EXPECT_EQ(hex(encoded(Set{"key", "value"})),
            "0101"
            "00"
            "00000003"
            "6b6579"
            "76616c7565");
  EXPECT_EQ(hex(encoded(Set{"k", "", SetCondition::nx, true})),
            "0101"
            "05"
            "00000001"
            "6b");
  EXPECT_EQ(hex(encoded(Set{"", "v", SetCondition::xx, false})),
            "0101"
            "02"
            "00000000"
            "76");
}

TEST(CommandFormat, DelIsPinned) {
  EXPECT_EQ(hex(encoded(Del{{"a", "", "bc"}})),
            "0102"
            "00000003"
            "00000001"
            "61"
            "00000000"
            "00000002"
            "6263");
}

TEST(CommandFormat, IncrByIsPinned) {
  EXPECT_EQ(hex(encoded(IncrBy{"n", -2})),
            "0103"
            "fffffffffffffffe"
            "6e");
}

TEST(CommandFormat, TheOthersArePinned) {
  EXPECT_EQ(hex(encoded(Append{"k", "v"})),
            "0104"
            "00000001"
            "6b"
            "76");
  EXPECT_EQ(hex(encoded(SetRange{258, "k", "v"})),
            "0105"
            "00000102"
            "00000001"
            "6b"
            "76");
  EXPECT_EQ(hex(encoded(GetDel{"k"})),
            "0106"
            "6b");
  EXPECT_EQ(hex(encoded(MSet{MSetCondition::none_exists, {{"k", "v"}}})),
            "0107"
            "01"
            "00000001"
            "00000001"
            "6b"
            "00000001"
            "76");
  EXPECT_EQ(hex(encoded(Rename{false, "k", "l"})),
            "0108"
            "00"
            "00000001"
            "6b"
            "6c");
  EXPECT_EQ(hex(encoded(Get{"k"})),
            "0120"
            "6b");
  EXPECT_EQ(hex(encoded(Exists{{"k"}})),
            "0121"
            "00000001"
            "00000001"
            "6b");
  EXPECT_EQ(hex(encoded(MGet{{"k"}})),
            "0122"
            "00000001"
            "00000001"
            "6b");
  EXPECT_EQ(hex(encoded(StrLen{"k"})),
            "0123"
            "6b");
  EXPECT_EQ(hex(encoded(GetRange{1, -1, "k"})),
            "0124"
            "0000000000000001"
            "ffffffffffffffff"
            "6b");
  EXPECT_EQ(hex(encoded(Size{})), "0125");
  EXPECT_EQ(hex(encoded(Transaction{{{"w", 7}}, {Get{"k"}}})),
            "0140"
            "00000001"
            "00000001"
            "77"
            "0000000000000007"
            "00000001"
            "00000003"
            "01206b");
}

TEST(CommandFormat, ThoseOfSessionsArePinned) {
  EXPECT_EQ(hex(encoded(OpenSession{})), "0141");
  EXPECT_EQ(hex(encoded(CloseSession{replica::SessionId(258)})),
            "0142"
            "0000000000000102");
  EXPECT_EQ(hex(encoded(TouchSession{replica::SessionId(1)})),
            "0143"
            "0000000000000001");
  EXPECT_EQ(hex(encoded(ExpireSession{replica::SessionId(1), 2})),
            "0144"
            "0000000000000001"
            "0000000000000002");
  const std::string get_del = encoded(GetDel{"k"});
  EXPECT_EQ(hex(encoded(Once{replica::SessionId(1), 3, 2, get_del})),
            "0145"
            "0000000000000001"
            "0000000000000003"
            "0000000000000002"
            "01066b");
}

TEST(CommandFormat, ThoseOfNamedLeasesArePinned) {
  EXPECT_EQ(hex(encoded(WithNamedLease{"n", AttachKey{grant::LeaseId(0), "k"}})),
            "0111"
            "00000001"
            "6e"
            "010c"
            "0000000000000000"
            "6b");
  EXPECT_EQ(hex(encoded(RenewNamed{{{grant::LeaseId(0), "n"}, {grant::LeaseId(258), ""}}})),
            "0112"
            "00000002"
            "0000000000000000"
            "00000001"
            "6e"
            "0000000000000102"
            "00000000");
}

TEST(CommandFormat, ThoseOfLeasesArePinned) {
  Set set{"k", "v"};
  set.lease = grant::LeaseId(7);
  set.token = grant::FencingToken(258);
  EXPECT_EQ(hex(encoded(set)),
            "0101"
            "18"
            "0000000000000007"
            "0000000000000102"
            "00000001"
            "6b"
            "76");
  Set kept{"k", "v"};
  kept.keep_lease = true;
  EXPECT_EQ(hex(encoded(kept)),
            "0101"
            "20"
            "00000001"
            "6b"
            "76");
  EXPECT_EQ(hex(encoded(GrantLease{grant::LeaseId(1), lease::Duration(258), "n", "h"})),
            "0110"
            "0000000000000001"
            "0000000000000102"
            "0000000000000000"
            "00"
            "00000000"
            "00000000"
            "00000001"
            "6e"
            "68");
  GrantLease terms{grant::LeaseId(1), lease::Duration(258), "", ""};
  terms.terms = {std::chrono::milliseconds(3), std::chrono::milliseconds(4), true};
  terms.asked_at_ms = 5;
  EXPECT_EQ(hex(encoded(terms)),
            "0110"
            "0000000000000001"
            "0000000000000102"
            "0000000000000005"
            "01"
            "00000003"
            "00000004"
            "00000000");
  EXPECT_EQ(hex(encoded(RenewLeases{{grant::LeaseId(1), grant::LeaseId(2)}})),
            "010a"
            "00000002"
            "0000000000000001"
            "0000000000000002");
  EXPECT_EQ(hex(encoded(RevokeLease{grant::LeaseId(1)})),
            "010b"
            "0000000000000001");
  EXPECT_EQ(hex(encoded(AttachKey{grant::LeaseId(1), "k"})),
            "010c"
            "0000000000000001"
            "6b");
  EXPECT_EQ(hex(encoded(LeaseInfo{grant::LeaseId(0), "n"})),
            "0126"
            "0000000000000000"
            "6e");
  EXPECT_EQ(hex(encoded(LeaseList{grant::LeaseId(1), 258})),
            "0127"
            "0000000000000001"
            "00000102");
  EXPECT_EQ(hex(encoded(ExpireLeases{raft::Term(3), {{grant::LeaseId(1), 2}}})),
            "0146"
            "0000000000000003"
            "00000001"
            "0000000000000001"
            "0000000000000002");
}

TEST(CommandFormat, ThoseOfUsersArePinned) {
  EXPECT_EQ(hex(encoded(SetUser{"ann", 258, "on ~a*"})),
            "0147"
            "00000003"
            "616e6e"
            "0000000000000102"
            "6f6e207e612a");
  EXPECT_EQ(hex(encoded(DelUsers{{"ann", "b"}})),
            "0148"
            "00000002"
            "00000003"
            "616e6e"
            "00000001"
            "62");
  EXPECT_EQ(hex(encoded(CompareState{})), "014a");
  EXPECT_EQ(hex(encoded(ReportState{{raft::NodeId(1), raft::Index(2), 3, {4, 5}, {6, 7}}})),
            "014b"
            "000000000000000100000000000000020000000000000003"
            "00000000000000040000000000000005"
            "00000000000000060000000000000007");
  const std::string size = encoded(Size{});
  EXPECT_EQ(hex(encoded(ActAs{"ann", true, size})),
            "0149"
            "01"
            "00000003"
            "616e6e"
            "0125");
}

TEST(CommandFormat, ThoseOfTheTimeOfKeysArePinned) {
  Set set{"k", "v"};
  set.ttl = std::chrono::milliseconds(1);
  EXPECT_EQ(hex(encoded(set)),
            "0101"
            "40"
            "00000000000f4240"
            "00000001"
            "6b"
            "76");
  MSet mset{MSetCondition::all_equal, {{"k", "v"}}, std::chrono::milliseconds(1)};
  EXPECT_EQ(hex(encoded(mset)),
            "0107"
            "06"
            "00000000000f4240"
            "00000001"
            "00000001"
            "6b"
            "00000001"
            "76");
  ExpireKey expire{"k", TimeChange::set, std::chrono::milliseconds(1)};
  EXPECT_EQ(hex(encoded(expire)),
            "010d"
            "00"
            "00000000000f4240"
            "6b");
  expire.condition = TimeCondition::gt;
  expire.get = true;
  expire.value = "v";
  expire.seen = {258, lease::Duration(3)};
  EXPECT_EQ(hex(encoded(expire)),
            "010d"
            "63"
            "00000000000f4240"
            "0000000000000102"
            "0000000000000003"
            "00000001"
            "76"
            "6b");
  ExpireKey more{"k", TimeChange::add, std::chrono::milliseconds(1)};
  EXPECT_EQ(hex(encoded(more)),
            "010d"
            "08"
            "00000000000f4240"
            "0000000000000000"
            "0000000000000000"
            "6b");
  EXPECT_EQ(hex(encoded(ExpireKey{"k", TimeChange::remove})),
            "010d"
            "10"
            "0000000000000000"
            "6b");
  EXPECT_EQ(hex(encoded(DelEqual{"v", {"k"}})),
            "010e"
            "00000001"
            "76"
            "00000001"
            "00000001"
            "6b");
  EXPECT_EQ(hex(encoded(KeyLease{"k"})),
            "0128"
            "00"
            "6b");
  EXPECT_EQ(hex(encoded(KeyLease{"k", "v"})),
            "0128"
            "01"
            "00000001"
            "76"
            "6b");
}

TEST(CommandFormat, ThatOfSequentialKeysIsPinned) {
  EXPECT_EQ(hex(encoded(SetSequential{"p", "v", grant::LeaseId(258)})),
            "010f"
            "0000000000000102"
            "00000001"
            "70"
            "76");
  EXPECT_EQ(hex(encoded(SetSequential{"", ""})),
            "010f"
            "0000000000000000"
            "00000000");
}

TEST(CommandFormat, RepliesArePinned) {
  EXPECT_EQ(hex(encode_reply(Ok{}).view()), "0101");
  EXPECT_EQ(hex(encode_reply(Nil{}).view()), "0102");
  EXPECT_EQ(hex(encode_reply(Integer{-1}).view()),
            "0103"
            "ffffffffffffffff");
  EXPECT_EQ(hex(encode_reply(ValueReply{Bytes(std::string("v"))}).view()),
            "0104"
            "76");
  EXPECT_EQ(hex(encode_reply(ErrorReply{ErrorKind::overflow, "no"}).view()),
            "0105"
            "05"
            "6e6f");
}

TEST(CommandFormat, KindsOfErrorArePinned) {
  EXPECT_EQ(static_cast<int>(ErrorKind::no_session), 8);
  EXPECT_EQ(static_cast<int>(ErrorKind::sequence_answered), 9);
  EXPECT_EQ(static_cast<int>(ErrorKind::sequence_too_far), 10);
  EXPECT_EQ(static_cast<int>(ErrorKind::result_gone), 11);
  EXPECT_EQ(static_cast<int>(ErrorKind::too_many_sessions), 12);
  EXPECT_EQ(static_cast<int>(ErrorKind::lease_taken), 13);
  EXPECT_EQ(static_cast<int>(ErrorKind::no_lease), 14);
  EXPECT_EQ(static_cast<int>(ErrorKind::fenced), 15);
  EXPECT_EQ(static_cast<int>(ErrorKind::key_exists), 16);
}

}  // namespace
}  // namespace leasehold::kv
