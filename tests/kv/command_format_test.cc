// The bytes that are in every log. They never change for format 1.
#include <leasehold/kv/command.h>
#include <leasehold/tests/kv/command_text.h>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::kv {
namespace {

using testing::encoded_text;
using testing::hex;

TEST(CommandFormat, SetIsPinned) {
  EXPECT_EQ(hex(encoded_text(Set{"key", "value"})),
            "0101"
            "00"
            "00000003"
            "6b6579"
            "76616c7565");
  EXPECT_EQ(hex(encoded_text(Set{"k", "", SetCondition::nx, true})),
            "0101"
            "05"
            "00000001"
            "6b");
  EXPECT_EQ(hex(encoded_text(Set{"", "v", SetCondition::xx, false})),
            "0101"
            "02"
            "00000000"
            "76");
}

TEST(CommandFormat, DelIsPinned) {
  EXPECT_EQ(hex(encoded_text(Del{{"a", "", "bc"}})),
            "0102"
            "00000003"
            "00000001"
            "61"
            "00000000"
            "00000002"
            "6263");
}

TEST(CommandFormat, IncrByIsPinned) {
  EXPECT_EQ(hex(encoded_text(IncrBy{"n", -2})),
            "0103"
            "fffffffffffffffe"
            "6e");
}

TEST(CommandFormat, TheOthersArePinned) {
  EXPECT_EQ(hex(encoded_text(Append{"k", "v"})),
            "0104"
            "00000001"
            "6b"
            "76");
  EXPECT_EQ(hex(encoded_text(SetRange{258, "k", "v"})),
            "0105"
            "00000102"
            "00000001"
            "6b"
            "76");
  EXPECT_EQ(hex(encoded_text(GetDel{"k"})),
            "0106"
            "6b");
  EXPECT_EQ(hex(encoded_text(MSet{MSetCondition::none_exists, {{"k", "v"}}})),
            "0107"
            "01"
            "00000001"
            "00000001"
            "6b"
            "00000001"
            "76");
  EXPECT_EQ(hex(encoded_text(Rename{false, "k", "l"})),
            "0108"
            "00"
            "00000001"
            "6b"
            "6c");
  EXPECT_EQ(hex(encoded_text(Get{"k"})),
            "0120"
            "6b");
  EXPECT_EQ(hex(encoded_text(Exists{{"k"}})),
            "0121"
            "00000001"
            "00000001"
            "6b");
  EXPECT_EQ(hex(encoded_text(MGet{{"k"}})),
            "0122"
            "00000001"
            "00000001"
            "6b");
  EXPECT_EQ(hex(encoded_text(StrLen{"k"})),
            "0123"
            "6b");
  EXPECT_EQ(hex(encoded_text(GetRange{1, -1, "k"})),
            "0124"
            "0000000000000001"
            "ffffffffffffffff"
            "6b");
  EXPECT_EQ(hex(encoded_text(Size{})), "0125");
  EXPECT_EQ(hex(encoded_text(Transaction{{{"w", 7}}, {Get{"k"}}})),
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
  EXPECT_EQ(hex(encoded_text(OpenSession{})), "0141");
  EXPECT_EQ(hex(encoded_text(CloseSession{replica::SessionId(258)})),
            "0142"
            "0000000000000102");
  EXPECT_EQ(hex(encoded_text(TouchSession{replica::SessionId(1)})),
            "0143"
            "0000000000000001");
  EXPECT_EQ(hex(encoded_text(ExpireSession{replica::SessionId(1), 2})),
            "0144"
            "0000000000000001"
            "0000000000000002");
  const std::string get_del = encoded_text(GetDel{"k"});
  EXPECT_EQ(hex(encoded_text(Once{replica::SessionId(1), 3, 2, get_del})),
            "0145"
            "0000000000000001"
            "0000000000000003"
            "0000000000000002"
            "01066b");
}

TEST(CommandFormat, ThoseThatMoveSlotsArePinned) {
  EXPECT_EQ(hex(encoded_text(BeginMove{1, 2, 2, {3, 258}})),
            "014d"
            "00000001"
            "00000002"
            "00000002"
            "00000002"
            "00000003"
            "00000102");
  EXPECT_EQ(hex(encoded_text(CancelMove{258})), "014e0000000000000102");
  EXPECT_EQ(hex(encoded_text(FreezeMove{258})), "014f0000000000000102");
  EXPECT_EQ(hex(encoded_text(ExpectSlots{2, 2, 1, 258, {{3, 4}}})),
            "0150"
            "00000002"
            "00000002"
            "00000001"
            "0000000000000102"
            "00000001"
            "00000003"
            "0000000000000004");
  EXPECT_EQ(hex(encoded_text(TakeSlots{1, 258, 3})),
            "0152000000010000000000000102"
            "0000000000000003");
  EXPECT_EQ(hex(encoded_text(LeaveSlots{258})), "01530000000000000102");
  EXPECT_EQ(hex(encoded_text(DropKeys{2, 258, {"k"}})),
            "0154"
            "00000002"
            "0000000000000102"
            "00000001"
            "00000001"
            "6b");
  EXPECT_EQ(hex(encoded_text(ForgetSlots{2, 258, true})), "015500000002000000000000010201");
  EXPECT_EQ(hex(encoded_text(RetryMove{258, {3}})), "015600000000000001020000000100000003");
}

TEST(CommandFormat, AMovedKeyIsPinned) {
  MovedKey moved;
  moved.key = "k";
  moved.exists = true;
  moved.value = "v";
  moved.create_revision = 1;
  moved.mod_revision = 2;
  moved.version = 3;
  moved.ttl = std::chrono::milliseconds(1);
  moved.token = grant::FencingToken(4);
  MovedKey gone;
  gone.key = "l";
  gone.token = grant::FencingToken(5);
  EXPECT_EQ(hex(encoded_text(ImportKeys{1, 258, {moved, gone}})),
            "0151"
            "00000001"
            "0000000000000102"
            "00000002"
            "07"
            "00000001"
            "6b"
            "0000000000000001"
            "0000000000000002"
            "0000000000000003"
            "00000001"
            "76"
            "00000000000f4240"
            "0000000000000004"
            "04"
            "00000001"
            "6c"
            "0000000000000005");
}

TEST(CommandFormat, ThoseOfNamedLeasesArePinned) {
  EXPECT_EQ(hex(encoded_text(WithNamedLease{"n", AttachKey{grant::LeaseId(0), "k"}})),
            "0111"
            "00000001"
            "6e"
            "010c"
            "0000000000000000"
            "6b");
  EXPECT_EQ(hex(encoded_text(RenewNamed{{{grant::LeaseId(0), "n"}, {grant::LeaseId(258), ""}}})),
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
  EXPECT_EQ(hex(encoded_text(set)),
            "0101"
            "18"
            "0000000000000007"
            "0000000000000102"
            "00000001"
            "6b"
            "76");
  Set kept{"k", "v"};
  kept.keep_lease = true;
  EXPECT_EQ(hex(encoded_text(kept)),
            "0101"
            "20"
            "00000001"
            "6b"
            "76");
  EXPECT_EQ(hex(encoded_text(GrantLease{grant::LeaseId(1), lease::Duration(258), "n", "h"})),
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
  EXPECT_EQ(hex(encoded_text(terms)),
            "0110"
            "0000000000000001"
            "0000000000000102"
            "0000000000000005"
            "01"
            "00000003"
            "00000004"
            "00000000");
  EXPECT_EQ(hex(encoded_text(RenewLeases{{grant::LeaseId(1), grant::LeaseId(2)}})),
            "010a"
            "00000002"
            "0000000000000001"
            "0000000000000002");
  EXPECT_EQ(hex(encoded_text(RevokeLease{grant::LeaseId(1)})),
            "010b"
            "0000000000000001");
  EXPECT_EQ(hex(encoded_text(AttachKey{grant::LeaseId(1), "k"})),
            "010c"
            "0000000000000001"
            "6b");
  EXPECT_EQ(hex(encoded_text(LeaseInfo{grant::LeaseId(0), "n"})),
            "0126"
            "0000000000000000"
            "6e");
  EXPECT_EQ(hex(encoded_text(LeaseList{grant::LeaseId(1), 258})),
            "0127"
            "0000000000000001"
            "00000102");
  EXPECT_EQ(hex(encoded_text(ExpireLeases{raft::Term(3), {{grant::LeaseId(1), 2}}})),
            "0146"
            "0000000000000003"
            "00000001"
            "0000000000000001"
            "0000000000000002");
}

TEST(CommandFormat, ThoseOfUsersArePinned) {
  EXPECT_EQ(hex(encoded_text(SetUser{"ann", 258, "on ~a*"})),
            "0147"
            "00000003"
            "616e6e"
            "0000000000000102"
            "6f6e207e612a");
  EXPECT_EQ(hex(encoded_text(DelUsers{{"ann", "b"}})),
            "0148"
            "00000002"
            "00000003"
            "616e6e"
            "00000001"
            "62");
  EXPECT_EQ(hex(encoded_text(CompareState{})), "014a");
  EXPECT_EQ(hex(encoded_text(ReportState{{raft::NodeId(1), raft::Index(2), 3, {4, 5}, {6, 7}}})),
            "014b"
            "000000000000000100000000000000020000000000000003"
            "00000000000000040000000000000005"
            "00000000000000060000000000000007");
  const std::string size = encoded_text(Size{});
  EXPECT_EQ(hex(encoded_text(ActAs{"ann", true, size})),
            "0149"
            "01"
            "00000003"
            "616e6e"
            "0125");
  EXPECT_EQ(hex(encoded_text(LoadAtMost{258, size})),
            "014c"
            "0000000000000102"
            "0125");
}

TEST(CommandFormat, ThoseOfTheTimeOfKeysArePinned) {
  Set set{"k", "v"};
  set.ttl = std::chrono::milliseconds(1);
  EXPECT_EQ(hex(encoded_text(set)),
            "0101"
            "40"
            "00000000000f4240"
            "00000001"
            "6b"
            "76");
  MSet mset{MSetCondition::all_equal, {{"k", "v"}}, std::chrono::milliseconds(1)};
  EXPECT_EQ(hex(encoded_text(mset)),
            "0107"
            "06"
            "00000000000f4240"
            "00000001"
            "00000001"
            "6b"
            "00000001"
            "76");
  ExpireKey expire{"k", TimeChange::set, std::chrono::milliseconds(1)};
  EXPECT_EQ(hex(encoded_text(expire)),
            "010d"
            "00"
            "00000000000f4240"
            "6b");
  expire.condition = TimeCondition::gt;
  expire.get = true;
  expire.value = "v";
  expire.seen = {258, lease::Duration(3)};
  EXPECT_EQ(hex(encoded_text(expire)),
            "010d"
            "63"
            "00000000000f4240"
            "0000000000000102"
            "0000000000000003"
            "00000001"
            "76"
            "6b");
  ExpireKey more{"k", TimeChange::add, std::chrono::milliseconds(1)};
  EXPECT_EQ(hex(encoded_text(more)),
            "010d"
            "08"
            "00000000000f4240"
            "0000000000000000"
            "0000000000000000"
            "6b");
  EXPECT_EQ(hex(encoded_text(ExpireKey{"k", TimeChange::remove})),
            "010d"
            "10"
            "0000000000000000"
            "6b");
  EXPECT_EQ(hex(encoded_text(DelEqual{"v", {"k"}})),
            "010e"
            "00000001"
            "76"
            "00000001"
            "00000001"
            "6b");
  EXPECT_EQ(hex(encoded_text(KeyLease{"k"})),
            "0128"
            "00"
            "6b");
  EXPECT_EQ(hex(encoded_text(KeyLease{"k", "v"})),
            "0128"
            "01"
            "00000001"
            "76"
            "6b");
}

TEST(CommandFormat, ThatOfSequentialKeysIsPinned) {
  EXPECT_EQ(hex(encoded_text(SetSequential{"p", "v", grant::LeaseId(258)})),
            "010f"
            "0000000000000102"
            "00000001"
            "70"
            "76");
  EXPECT_EQ(hex(encoded_text(SetSequential{"", ""})),
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
  EXPECT_EQ(static_cast<int>(ErrorKind::slot_left), 21);
}

TEST(SlotCommands, WrongNumbersAreNeitherWrittenNorRead) {
  const auto row = [](std::string_view key, std::uint64_t revision = 1) {
    MovedKey moved;
    moved.key = key;
    moved.exists = true;
    moved.create_revision = moved.mod_revision = revision;
    moved.version = 1;
    return moved;
  };
  for (const Command& command :
       std::vector<Command>{BeginMove{0, 2, 2, {1}},
                            BeginMove{1, 2, 1, {1}},
                            BeginMove{1, 2, 3, {1}},
                            BeginMove{1, 1, 1, {1}},
                            BeginMove{1, 20000, 2, {1}},
                            BeginMove{1, 2, 2, {}},
                            BeginMove{1, 2, 2, {2, 1}},
                            BeginMove{1, 2, 2, {1, 1}},
                            BeginMove{1, 2, 2, {16384}},
                            RetryMove{1, {}},
                            RetryMove{1, {1, 1}},
                            ExpectSlots{2, 2, 1, 0, {{1, 1}}},
                            ExpectSlots{2, 2, 1, 1, {{1, 0}}},
                            ExpectSlots{2, 2, 1, 1, {}},
                            ExpectSlots{2, 2, 1, 1, {{1, 1}, {1, 1}}},
                            ImportKeys{1, 1, {}},
                            ImportKeys{1, 1, {row("b"), row("a")}},
                            ImportKeys{1, 1, {row("a", 0)}},
                            ImportKeys{1, 1, {row("a", (std::uint64_t{1} << 62U) + 1)}},
                            TakeSlots{1, 1, (std::uint64_t{1} << 62U) + 1},
                            DropKeys{1, 1, {}},
                            DropKeys{1, 1, {"b", "a"}}}) {
    EXPECT_FALSE(encode_command(command));
  }
  std::string bytes = encoded_text(BeginMove{1, 2, 2, {1, 2}});
  EXPECT_TRUE(decode_command(bytes));
  bytes.back() = '\1';
  EXPECT_FALSE(decode_command(bytes)) << "one slot twice";
}

}  // namespace
}  // namespace leasehold::kv
