#include <leasehold/storage/folder.h>
#include <leasehold/storage/record.h>
#include <leasehold/tests/storage/log_support.h>

#include <fstream>

namespace leasehold::storage::testing {
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

StateRecord some_state() {
  StateRecord state;
  state.hard_state.term = raft::Term(7);
  state.hard_state.voted_for = raft::NodeId(2);
  state.hard_state.vote_committed = true;
  state.hard_state.promise = {raft::NodeId(3), raft::Term(6), raft::Duration(1000000000)};
  state.last = {raft::Term(5), raft::Index(900)};
  return state;
}

// The bytes that stand on every disk. They never change for format 1.

TEST(RecordFormat, KeysArePinned) {
  EXPECT_EQ(hex(identity_key()),
            "6e"
            "01");
  EXPECT_EQ(hex(record_key(raft::GroupId(258), RecordKind::state)),
            "67"
            "0000000000000102"
            "04");
  EXPECT_EQ(hex(entry_key(raft::GroupId(1), raft::Index(0x1234))),
            "67"
            "0000000000000001"
            "01"
            "0000000000001234");
}

TEST(RecordFormat, RecordsArePinned) {
  EXPECT_EQ(hex(encode_identity({0xabcd, raft::NodeId(3), {1, 2}})),
            "01"
            "000000000000abcd"
            "0000000000000003"
            "0000000000000001"
            "0000000000000002");
  EXPECT_EQ(hex(encode_state(some_state())),
            "01"
            "0000000000000007"
            "0000000000000002"
            "01"
            "0000000000000003"
            "0000000000000006"
            "000000003b9aca00"
            "0000000000000005"
            "0000000000000384");
  EXPECT_EQ(hex(encode_entry_head({raft::Term(9), raft::Term(8), raft::EntryKind::membership})),
            "01"
            "02"
            "0000000000000009"
            "0000000000000008");
  EXPECT_EQ(encode_entry_head({}).size(), kEntryHeadBytes);
  const std::string base = encode_base({{raft::Term(4), raft::Index(5)}, three_voters()});
  EXPECT_EQ(hex(base.substr(0, 17)),
            "01"
            "0000000000000004"
            "0000000000000005");
  EXPECT_EQ(base.substr(17), raft::encode_membership(three_voters()).view());
}

TEST(RecordCodec, DecodesWhatWasEncoded) {
  const IdentityRecord identity{0xabcd, raft::NodeId(3), {1, 2}};
  EXPECT_EQ(decode_identity(encode_identity(identity)).value(), identity);
  EXPECT_EQ(decode_state(encode_state(some_state())).value(), some_state());
  EXPECT_EQ(decode_state(encode_state({})).value(), StateRecord());
  EXPECT_EQ(decode_confirmed(encode_confirmed(three_voters())).value(), three_voters());
  const BaseRecord base{{raft::Term(4), raft::Index(5)}, three_voters()};
  EXPECT_EQ(decode_base(encode_base(base)).value(), base);
  const auto head = decode_entry_head(
      encode_entry_head({raft::Term(9), raft::Term(8), raft::EntryKind::empty}) + "payload");
  ASSERT_TRUE(head);
  EXPECT_EQ(head.value().term, raft::Term(9));
  EXPECT_EQ(head.value().previous_term, raft::Term(8));
  EXPECT_EQ(head.value().kind, raft::EntryKind::empty);
  EXPECT_EQ(
      decode_entry_key(raft::GroupId(4), entry_key(raft::GroupId(4), raft::Index(77))).value(),
      raft::Index(77));
}

/// Decodes as each kind of record; "ok" or the error's name of each.
template <class Check>
void for_each_decoder(const std::string& bytes, Check check) {
  check("identity", decode_identity(bytes).ok(), bytes);
  check("state", decode_state(bytes).ok(), bytes);
  check("confirmed", decode_confirmed(bytes).ok(), bytes);
  check("base", decode_base(bytes).ok(), bytes);
  check("entry", decode_entry_head(bytes).ok(), bytes);
}

TEST(RecordCodec, EveryPrefixIsCorrupted) {
  const auto expect_corrupted = [](const auto& result) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::corrupted);
  };
  const auto prefixes = [](const std::string& bytes, const auto& check) {
    for (std::size_t length = 0; length < bytes.size(); ++length) check(bytes.substr(0, length));
  };
  prefixes(encode_identity({}),
           [&](const std::string& b) { expect_corrupted(decode_identity(b)); });
  prefixes(encode_state({}), [&](const std::string& b) { expect_corrupted(decode_state(b)); });
  prefixes(encode_confirmed(three_voters()),
           [&](const std::string& b) { expect_corrupted(decode_confirmed(b)); });
  prefixes(encode_base({{}, three_voters()}),
           [&](const std::string& b) { expect_corrupted(decode_base(b)); });
  prefixes(encode_entry_head({}),
           [&](const std::string& b) { expect_corrupted(decode_entry_head(b)); });
}

TEST(RecordCodec, BytesTooManyOrUnknownAreCorrupted) {
  EXPECT_EQ(decode_identity(encode_identity({}) + "x").error().code, ErrorCode::corrupted);
  EXPECT_EQ(decode_state(encode_state({}) + "x").error().code, ErrorCode::corrupted);
  EXPECT_EQ(decode_base(encode_base({{}, three_voters()}) + "x").error().code,
            ErrorCode::corrupted);
  std::string flags = encode_state({});
  flags[17] = 2;
  EXPECT_EQ(decode_state(flags).error().code, ErrorCode::corrupted);
  std::string kind = encode_entry_head({});
  kind[1] = 3;
  EXPECT_EQ(decode_entry_head(kind).error().code, ErrorCode::corrupted);
}

TEST(RecordCodec, ANewerFormatNamesBothNumbers) {
  for_each_decoder(std::string(1, '\2') + std::string(60, 'x'),
                   [](const char* name, bool ok, const std::string&) { EXPECT_FALSE(ok) << name; });
  const auto state = decode_state(std::string(1, '\2'));
  EXPECT_EQ(state.error().code, ErrorCode::unsupported_format);
  EXPECT_EQ(state.error().message,
            "the state record has format 2, this build knows 1: use a newer build");
}

TEST(RecordCodec, HostileBytesAreHandled) {
  Random random(61);
  for (int round = 0; round < 50000; ++round) {
    std::string bytes(random.below(80), '\1');
    for (char& c : bytes) {
      if (random.chance(1, 2)) c = static_cast<char>(random.below(256));
    }
    for_each_decoder(bytes, [](const char*, bool, const std::string&) {});
  }
}

FolderMark some_mark() {
  FolderMark mark;
  mark.cluster_id = 0xabcdef;
  mark.id = raft::NodeId(3);
  mark.uuid = {0x11, 0x22};
  mark.incarnation = raft::Incarnation(5);
  mark.wal_number = 12;
  return mark;
}

TEST(FolderMark, IsPinned) {
  FolderMark mark = some_mark();
  const std::string head =
      "leasehold-log 1\n"
      "cluster 0000000000abcdef\n"
      "node 3\n"
      "uuid 00000000000000110000000000000022\n"
      "incarnation 5\n";
  EXPECT_EQ(encode_mark(mark).substr(0, head.size() + 12), head + "wal 12 open\n");
  mark.wal_size = 34567;
  EXPECT_EQ(encode_mark(mark).substr(0, head.size() + 20), head + "wal 12 closed 34567\n");
  EXPECT_EQ(decode_mark(encode_mark(mark)).value(), mark);
  EXPECT_EQ(decode_mark(encode_mark(some_mark())).value(), some_mark());
}

TEST(FolderMark, EveryFlippedBitAndEveryCutIsRefused) {
  FolderMark mark = some_mark();
  mark.wal_size = 34567;
  const std::string good = encode_mark(mark);
  for (std::size_t at = 0; at < good.size(); ++at) {
    EXPECT_FALSE(decode_mark(good.substr(0, at))) << at;
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      EXPECT_FALSE(decode_mark(bad)) << bad;
    }
  }
  EXPECT_FALSE(decode_mark(good + "\n"));
}

TEST(FolderMark, ANewerFormatNamesBothNumbers) {
  const auto mark = decode_mark("leasehold-log 2\nwhatever comes");
  ASSERT_FALSE(mark);
  EXPECT_EQ(mark.error().code, ErrorCode::unsupported_format);
  EXPECT_EQ(mark.error().message, "the log has format 2, this build knows 1: use a newer build");
}

TEST(Folder, OneOwnerAtATime) {
  const TemporaryFolder temporary;
  auto first = Folder::open(temporary.path("a/b"));
  ASSERT_TRUE(first);
  const auto second = Folder::open(temporary.path("a/b"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::in_use);
  EXPECT_NE(second.error().message.find(temporary.path("a/b")), std::string::npos);
}

TEST(Folder, TheMarkIsReplaced) {
  const TemporaryFolder temporary;
  const auto folder = Folder::open(temporary.path("log"));
  ASSERT_TRUE(folder);
  EXPECT_FALSE(folder.value().read_mark().value());
  EXPECT_TRUE(folder.value().blank().value());
  FolderMark mark = some_mark();
  for (std::uint64_t number = 1; number < 4; ++number) {
    mark.wal_number = number;
    ASSERT_TRUE(folder.value().write_mark(mark));
    EXPECT_EQ(*folder.value().read_mark().value(), mark);
  }
  EXPECT_TRUE(folder.value().blank().value());
  std::ofstream(temporary.path("log/other")) << "x";
  EXPECT_FALSE(folder.value().blank().value());
}

}  // namespace
}  // namespace leasehold::storage::testing
