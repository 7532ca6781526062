#include <leasehold/storage/folder.h>
#include <leasehold/storage/posix_disk.h>
#include <leasehold/storage/segment_record.h>
#include <leasehold/tests/base/hex.h>
#include <leasehold/tests/storage/log_support.h>

#include <fstream>

namespace leasehold::storage::testing {
namespace {

using leasehold::testing::hex;

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
  BatchEncoder encoder(out, kLogFormat);
  encoder.begin(raft::GroupId(), body);
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

/// The body of a batch without entries.
std::string encode_batch(const BatchBody& body) {
  std::string out;
  BatchEncoder encoder(out, kLogFormat);
  encoder.begin(raft::GroupId(), body);
  return out.substr(kFrameHeaderBytes);
}

Result<BatchBody> decode_batch(const std::string& bytes) {
  std::string_view rest(bytes);
  auto section = take_section(rest, kLogFormat, raft::GroupId());
  if (!section) return section.error();
  return std::move(section.value().batch);
}

/// What a log is cut with.
BatchBody some_cut() {
  BatchBody body;
  body.state = some_state();
  body.first = raft::Index(901);
  body.previous_term = raft::Term(5);
  body.foundation.confirmed = three_voters();
  body.foundation.base = raft::LogBase{{raft::Term(4), raft::Index(5)}, three_voters({5, 5})};
  return body;
}

// The bytes that stand on every disk. They never change for format 3.

TEST(FrameFormat, AMarkIsPinned) {
  FrameHeader header;
  header.kind = FrameKind::mark;
  header.salt = 0x1122334455667788;
  header.sequence = 31;
  header.synced_through = 31;
  EXPECT_EQ(hex(encode_frame(header, {})),
            "03"
            "03"
            "0000"
            "dd9c7453"
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
            "0000000000000082");
  EXPECT_EQ(hex(frame.substr(64, kBatchBodyBytes)), std::string(kSomeStateHex) +
                                                        "0000000000000383"
                                                        "0000000000000004"
                                                        "00000002"
                                                        "00");
  EXPECT_EQ(hex(frame.substr(64 + kBatchBodyBytes + 4, kEntryHeadBytes - 4 + 2)),
            "00000002"
            "00"
            "0000000000000383"
            "0000000000000005"
            "6162");
}

TEST(FrameFormat, AHeadIsPinned) {
  EXPECT_EQ(hex(encode_head(some_head())),
            "0000000000000004"
            "0000000000004000"
            "000000000000feed"
            "000000000000abcd"
            "0000000000000003"
            "0000000000000001"
            "0000000000000002"
            "0000000000000009");
}

TEST(FrameFormat, ABaseIsPinned) {
  BatchBody body = some_cut();
  const auto part = [](const raft::Membership& membership) {
    const Bytes bytes = raft::encode_membership(membership);
    std::string out(4, '\0');
    out[3] = static_cast<char>(bytes.size());
    return out + std::string(bytes.view());
  };
  const std::string parts = part(three_voters()) +
                            std::string("\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\5", 16) +
                            part(three_voters({5, 5}));
  EXPECT_EQ(encode_batch(body).substr(kBatchBodyBytes - 1), "\3" + parts);
  body.reset = true;
  EXPECT_EQ(encode_batch(body).substr(kBatchBodyBytes - 1), "\7" + parts);
  body.foundation.base.reset();
  body.reset = false;
  EXPECT_EQ(encode_batch(body).substr(kBatchBodyBytes - 1), "\1" + part(three_voters()));
}

TEST(FrameCodec, DecodesWhatWasEncoded) {
  EXPECT_EQ(decode_head(encode_head(some_head())).value(), some_head());
  EXPECT_EQ(decode_batch(encode_batch({})).value(), BatchBody());
  BatchBody cut = some_cut();
  EXPECT_EQ(decode_batch(encode_batch(cut)).value(), cut);
  cut.reset = true;
  EXPECT_EQ(decode_batch(encode_batch(cut)).value(), cut);
  cut.reset = false;
  cut.foundation.base.reset();
  EXPECT_EQ(decode_batch(encode_batch(cut)).value(), cut);

  std::string frame;
  some_batch_frame(frame);
  const auto header = decode_header(frame).header;
  ASSERT_TRUE(header);
  EXPECT_EQ(header->kind, FrameKind::batch);
  EXPECT_EQ(header->frame_bytes(), frame.size());
  std::string_view body(frame.data() + kFrameHeaderBytes, header->body_bytes);
  const auto section = take_section(body, header->format, raft::GroupId());
  ASSERT_TRUE(section);
  const BatchBody& batch = section.value().batch;
  EXPECT_EQ(batch.state, some_state());
  EXPECT_EQ(batch.first, raft::Index(899));
  EXPECT_EQ(batch.previous_term, raft::Term(4));
  EXPECT_EQ(batch.count, 2U);
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
  prefixes(encode_batch(some_cut()), &decode_batch);
  prefixes(encode_head({}), [](const std::string& bytes) { return decode_head(bytes); });
  std::string frame;
  some_batch_frame(frame);
  prefixes(frame.substr(kFrameHeaderBytes, kBatchBodyBytes), &decode_batch);
  prefixes(frame.substr(kFrameHeaderBytes + kBatchBodyBytes, kEntryHeadBytes + 2),
           [](const std::string& bytes) {
             std::string_view rest(bytes);
             return take_entry(rest);
           });
}

TEST(FrameCodec, BytesTooManyOrUnknownAreCorrupted) {
  EXPECT_EQ(decode_head(encode_head({}) + "x").error().code, ErrorCode::corrupted);
  std::string vote_flags = encode_batch({});
  vote_flags[16] = 2;
  EXPECT_EQ(decode_batch(vote_flags).error().code, ErrorCode::corrupted);
  std::string flags = encode_batch(some_cut());
  // A base without the confirmed set, a reset without a base, and an unknown flag.
  for (const char bad : {'\2', '\5', '\13'}) {
    flags[kBatchBodyBytes - 1] = bad;
    EXPECT_EQ(decode_batch(flags).error().code, ErrorCode::corrupted);
  }
}

TEST(FrameCodec, HostileBytesAreHandled) {
  Random random(61);
  for (int round = 0; round < 50000; ++round) {
    std::string bytes(kFrameHeaderBytes + random.below(200), '\3');
    for (char& c : bytes) {
      if (random.chance(1, 2)) c = static_cast<char>(random.below(256));
    }
    EXPECT_FALSE(decode_header(bytes).header);
    static_cast<void>(decode_head(bytes).ok());
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
      "leasehold-log 3\n"
      "cluster 0000000000abcdef\n"
      "node 3\n"
      "uuid 00000000000000110000000000000022\n"
      "incarnation 5\n";
  const std::string nothing = "predecessor 0000000000000000 0\ncheck ";
  const std::string open = head + "segments 1 12 open\n" + nothing;
  EXPECT_EQ(encode_mark(mark).substr(0, open.size()), open);
  EXPECT_EQ(encode_mark(mark).substr(open.size() + 8),
            "\n" + std::string(kMarkBytes - open.size() - 10, ' ') + "\n");
  mark.closed = ClosedAt{11, 34567, 981};
  const std::string closed = head + "segments 1 12 closed 11 34567 981\n" + nothing;
  EXPECT_EQ(encode_mark(mark).substr(0, closed.size()), closed);
  mark.first_segment = 7;
  mark.predecessor = {0xfeed, 512};
  const std::string cut = head +
                          "segments 7 12 closed 11 34567 981\n"
                          "predecessor 000000000000feed 512\ncheck ";
  EXPECT_EQ(encode_mark(mark).substr(0, cut.size()), cut);
  EXPECT_EQ(encode_mark(mark).size(), kMarkBytes);
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

TEST(FolderMark, AnotherFormatIsReportedOnlyOfAWholeFile) {
  std::string bad = encode_mark(some_mark());
  bad.replace(bad.find(" 3"), 2, " 7");
  EXPECT_EQ(decode_mark(bad).error().code, ErrorCode::corrupted);
  EXPECT_EQ(decode_mark("leasehold-log 5\nwhatever comes").error().code, ErrorCode::corrupted);
}

TEST(FolderMark, AnotherFormatNamesBothNumbers) {
  const auto newer = decode_mark("leasehold-log 5\nwhatever comes\ncheck 5b984f9d\n");
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, ErrorCode::unsupported_format);
  EXPECT_EQ(newer.error().message,
            "the log has format 5, this build knows 3 and 4: use a newer build");
  const auto older = decode_mark("leasehold-log 2\ncluster 00\ncheck bb9e3166\n    \n");
  ASSERT_FALSE(older);
  EXPECT_EQ(older.error().code, ErrorCode::unsupported_format);
  EXPECT_NE(
      older.error().message.find("the log has format 2, this build knows 3 and 4: go on with the "
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
  // Removed, and still readable where it is open.
  ASSERT_TRUE(disk.remove("a"));
  ASSERT_TRUE(disk.remove("a"));
  EXPECT_TRUE(disk.list().value().empty());
  ASSERT_TRUE(file.value()->read(1999999, read.data(), read.size()));
  EXPECT_EQ(read, std::string("\0here\0", 6));
  EXPECT_GT(disk.free_bytes().value(), 0U);
}

TEST(PosixDisk, AFileForWhichThereIsNoSpaceLeavesNothing) {
  const TemporaryFolder temporary;
  const auto opened = open_posix_disk(temporary.path("log"));
  ASSERT_TRUE(opened);
  Disk& disk = *opened.value();
  const std::uint64_t free = disk.free_bytes().value();
  if (free > std::uint64_t{1} << 44U) GTEST_SKIP() << "the disk is too large to be too small";
  const auto made = disk.create("a", "abc", free + (std::uint64_t{1} << 32U));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, kNoSpace) << made.error().message;
  EXPECT_NE(made.error().message.find("free some space"), std::string::npos);
  EXPECT_TRUE(disk.list().value().empty());
}

}  // namespace
}  // namespace leasehold::storage::testing
