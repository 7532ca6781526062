#include <leasehold/storage/folder.h>
#include <leasehold/storage/posix_disk.h>
#include <leasehold/storage/segment_record.h>
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
constexpr char kSomeStateHex[] =
    "0000000000000007"
    "0000000000000002"
    "01"
    "0000000000000003"
    "0000000000000006"
    "000000003b9aca00"
    "0000000000000005"
    "0000000000000384";

HeadBody some_head() {
  HeadBody head;
  head.segment = 4;
  head.segment_bytes = 16384;
  head.previous_salt = 0xfeed;
  head.cluster_id = 0xabcd;
  head.id = raft::NodeId(3);
  head.uuid = {1, 2};
  head.group = raft::GroupId(9);
  return head;
}

std::string some_batch_frame(std::string& out) {
  BatchBody body;
  body.state = some_state();
  body.first = raft::Index(899);
  body.previous_term = raft::Term(4);
  body.count = 2;
  BatchEncoder encoder(out, body);
  encoder.add(command_entry(899, 5, "ab"));
  encoder.add({{raft::Term(5), raft::Index(900)}, raft::EntryKind::empty, {}});
  FrameHeader header;
  header.kind = FrameKind::batch;
  header.salt = 0x1122334455667788;
  header.sequence = 31;
  header.synced_through = 30;
  encoder.finish(header);
  return out;
}

// The bytes that stand on every disk. They never change for format 2.

TEST(FrameFormat, AMarkIsPinned) {
  FrameHeader header;
  header.kind = FrameKind::mark;
  header.salt = 0x1122334455667788;
  header.sequence = 31;
  header.synced_through = 31;
  EXPECT_EQ(hex(encode_frame(header, {})),
            "02"
            "04"
            "0000"
            "25e37004"
            "1122334455667788"
            "000000000000001f"
            "000000000000001f"
            "0000000000000000"
            "00000000" +
                std::string(40, '0'));
}

TEST(FrameFormat, ABatchIsPinned) {
  std::string frame;
  some_batch_frame(frame);
  ASSERT_EQ(frame.size(), 256U);
  EXPECT_EQ(hex(frame.substr(8, 32)),
            "1122334455667788"
            "000000000000001f"
            "000000000000001e"
            "0000000000000081");
  EXPECT_EQ(hex(frame.substr(64, kBatchBodyBytes)), std::string(kSomeStateHex) +
                                                        "0000000000000383"
                                                        "0000000000000004"
                                                        "00000002");
  EXPECT_EQ(hex(frame.substr(64 + kBatchBodyBytes + 4, kEntryHeadBytes - 4 + 2)),
            "00000002"
            "00"
            "0000000000000383"
            "0000000000000005"
            "6162");
}

TEST(FrameFormat, HeadAndStateArePinned) {
  EXPECT_EQ(hex(encode_head(some_head())),
            "0000000000000004"
            "0000000000004000"
            "000000000000feed"
            "000000000000abcd"
            "0000000000000003"
            "0000000000000001"
            "0000000000000002"
            "0000000000000009");
  StateBody body;
  body.state = some_state();
  EXPECT_EQ(hex(encode_state(body)), std::string(kSomeStateHex) + "00");
  body.confirmed = three_voters();
  body.base = BaseRecord{{raft::Term(4), raft::Index(5)}, three_voters()};
  const Bytes membership = raft::encode_membership(three_voters());
  std::string length(4, '\0');
  length[3] = static_cast<char>(membership.size());
  EXPECT_EQ(encode_state(body).substr(57), "\3" + length + std::string(membership.view()) +
                                               std::string("\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\5", 16) +
                                               length + std::string(membership.view()));
}

TEST(FrameCodec, DecodesWhatWasEncoded) {
  EXPECT_EQ(decode_head(encode_head(some_head())).value(), some_head());
  StateBody state;
  EXPECT_EQ(decode_state(encode_state(state)).value(), state);
  state.state = some_state();
  state.confirmed = three_voters();
  EXPECT_EQ(decode_state(encode_state(state)).value(), state);
  state.base = BaseRecord{{raft::Term(4), raft::Index(5)}, three_voters({5, 5})};
  EXPECT_EQ(decode_state(encode_state(state)).value(), state);

  std::string frame;
  some_batch_frame(frame);
  const auto header = decode_header(frame).header;
  ASSERT_TRUE(header);
  EXPECT_EQ(header->kind, FrameKind::batch);
  EXPECT_EQ(header->frame_bytes(), frame.size());
  std::string_view body(frame.data() + kFrameHeaderBytes, header->body_bytes);
  const auto batch = decode_batch(body);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch.value().state, some_state());
  EXPECT_EQ(batch.value().first, raft::Index(899));
  EXPECT_EQ(batch.value().previous_term, raft::Term(4));
  EXPECT_EQ(batch.value().count, 2U);
  body.remove_prefix(kBatchBodyBytes);
  const auto first = take_entry(body);
  ASSERT_TRUE(first);
  EXPECT_EQ(first.value().payload, "ab");
  const auto second = take_entry(body);
  ASSERT_TRUE(second);
  EXPECT_EQ(second.value().kind, raft::EntryKind::empty);
  EXPECT_EQ(second.value().id, (raft::LogId{raft::Term(5), raft::Index(900)}));
  EXPECT_TRUE(body.empty());
}

TEST(FrameCodec, EveryFlippedBitOfAHeaderAndAnEntryIsFound) {
  std::string frame;
  const std::string good = some_batch_frame(frame);
  const std::size_t entry = kFrameHeaderBytes + kBatchBodyBytes;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      if (at < kFrameHeaderBytes) {
        EXPECT_FALSE(decode_header(bad).header) << at;
      }
      if (at >= entry && at < entry + kEntryHeadBytes + 2) {
        std::string_view rest = std::string_view(bad).substr(entry);
        EXPECT_FALSE(take_entry(rest)) << at;
      }
    }
  }
}

TEST(FrameCodec, EveryPrefixIsCorrupted) {
  const auto prefixes = [](const std::string& bytes, const auto& decode) {
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      const auto decoded = decode(bytes.substr(0, length));
      ASSERT_FALSE(decoded) << length;
      EXPECT_EQ(decoded.error().code, ErrorCode::corrupted);
    }
  };
  StateBody state;
  state.confirmed = three_voters();
  state.base = BaseRecord{{}, three_voters()};
  prefixes(encode_state(state), [](const std::string& bytes) { return decode_state(bytes); });
  prefixes(encode_head({}), [](const std::string& bytes) { return decode_head(bytes); });
  std::string frame;
  some_batch_frame(frame);
  prefixes(frame.substr(kFrameHeaderBytes, kBatchBodyBytes),
           [](const std::string& bytes) { return decode_batch(bytes); });
  prefixes(frame.substr(kFrameHeaderBytes + kBatchBodyBytes, kEntryHeadBytes + 2),
           [](const std::string& bytes) {
             std::string_view rest(bytes);
             return take_entry(rest);
           });
}

TEST(FrameCodec, BytesTooManyOrUnknownAreCorrupted) {
  EXPECT_EQ(decode_head(encode_head({}) + "x").error().code, ErrorCode::corrupted);
  EXPECT_EQ(decode_state(encode_state({}) + "x").error().code, ErrorCode::corrupted);
  std::string vote_flags = encode_state({});
  vote_flags[16] = 2;
  EXPECT_EQ(decode_state(vote_flags).error().code, ErrorCode::corrupted);
  std::string flags = encode_state({});
  flags.back() = 4;
  EXPECT_EQ(decode_state(flags).error().code, ErrorCode::corrupted);
}

TEST(FrameCodec, HostileBytesAreHandled) {
  Random random(61);
  for (int round = 0; round < 50000; ++round) {
    std::string bytes(kFrameHeaderBytes + random.below(200), '\2');
    for (char& c : bytes) {
      if (random.chance(1, 2)) c = static_cast<char>(random.below(256));
    }
    EXPECT_FALSE(decode_header(bytes).header);
    static_cast<void>(decode_head(bytes).ok());
    static_cast<void>(decode_state(bytes).ok());
    static_cast<void>(decode_batch(bytes).ok());
    std::string_view rest(bytes);
    EXPECT_FALSE(take_entry(rest));
  }
}

FolderMark some_mark() {
  FolderMark mark;
  mark.cluster_id = 0xabcdef;
  mark.id = raft::NodeId(3);
  mark.uuid = {0x11, 0x22};
  mark.incarnation = raft::Incarnation(5);
  mark.last_segment = 12;
  return mark;
}

TEST(FolderMark, IsPinned) {
  FolderMark mark = some_mark();
  const std::string head =
      "leasehold-log 2\n"
      "cluster 0000000000abcdef\n"
      "node 3\n"
      "uuid 00000000000000110000000000000022\n"
      "incarnation 5\n";
  const std::string open = head + "segments 1 12 open\ncheck ";
  EXPECT_EQ(encode_mark(mark).substr(0, open.size()), open);
  mark.closed = ClosedAt{11, 34567, 981};
  const std::string closed = head + "segments 1 12 closed 11 34567 981\ncheck ";
  EXPECT_EQ(encode_mark(mark).substr(0, closed.size()), closed);
  EXPECT_EQ(decode_mark(encode_mark(mark)).value(), mark);
  EXPECT_EQ(decode_mark(encode_mark(some_mark())).value(), some_mark());
}

TEST(FolderMark, EveryFlippedBitAndEveryCutIsRefused) {
  FolderMark mark = some_mark();
  mark.closed = ClosedAt{11, 34567, 981};
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

TEST(FolderMark, AnotherFormatNamesBothNumbers) {
  const auto newer = decode_mark("leasehold-log 3\nwhatever comes");
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, ErrorCode::unsupported_format);
  EXPECT_EQ(newer.error().message, "the log has format 3, this build knows 2: use a newer build");
  const auto older = decode_mark("leasehold-log 1\ncluster 00");
  ASSERT_FALSE(older);
  EXPECT_EQ(older.error().code, ErrorCode::unsupported_format);
  EXPECT_NE(older.error().message.find("the log has format 1, this build knows 2: go on with the "
                                       "build that wrote it, or wipe"),
            std::string::npos);
}

// The operating system's files.

TEST(PosixDisk, OneOwnerAtATime) {
  const TemporaryFolder temporary;
  const auto first = open_posix_disk(temporary.path("a/b"));
  ASSERT_TRUE(first);
  const auto second = open_posix_disk(temporary.path("a/b"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::in_use);
  EXPECT_NE(second.error().message.find(temporary.path("a/b")), std::string::npos);
}

TEST(PosixDisk, FilesAreMadeOfAHeadAndZeroesAndReplaced) {
  const TemporaryFolder temporary;
  const auto opened = open_posix_disk(temporary.path("log"));
  ASSERT_TRUE(opened);
  Disk& disk = *opened.value();
  EXPECT_TRUE(disk.list().value().empty());
  EXPECT_FALSE(disk.load("a", 10).value());
  for (const std::uint64_t size : {std::uint64_t{3}, std::uint64_t{3} << 20U}) {
    const auto file = disk.create("a", "abc", size);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(disk.list().value(), std::vector<std::string>{"a"});
    EXPECT_EQ(file.value()->size(), size);
    EXPECT_EQ(*disk.load("a", 5 << 20U).value(), "abc" + std::string(size - 3, '\0'));
  }
  const auto file = disk.open("a");
  ASSERT_TRUE(file);
  EXPECT_EQ(file.value()->size(), 3U << 20U);
  ASSERT_TRUE(file.value()->write(2000000, "here"));
  ASSERT_TRUE(file.value()->sync());
  std::string read(6, 'x');
  ASSERT_TRUE(file.value()->read(1999999, read.data(), read.size()));
  EXPECT_EQ(read, std::string("\0here\0", 6));
  EXPECT_EQ(file.value()->read((3U << 20U) - 2, read.data(), read.size()).error().code,
            ErrorCode::io);
  EXPECT_EQ(disk.open("b").error().code, ErrorCode::io);
}

}  // namespace
}  // namespace leasehold::storage::testing
