// A session as it stands in snapshots and on disk.
#include <gtest/gtest.h>
#include <leasehold/base/random.h>
#include <leasehold/replica/session_table.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::replica {
namespace {

using Verdict = SessionTable::Verdict;

SessionId id(std::uint64_t number) {
  return SessionId(number);
}

/// What the caller of a table does: executes once, and answers.
std::string run(SessionTable& table, SessionId session, std::uint64_t sequence,
                std::uint64_t answered_below, const std::string& result) {
  const SessionTable::Begun begun = table.begin(session, sequence, answered_below);
  if (begun.verdict != Verdict::execute) {
    return "not again: " + std::string(begun.result.view());
  }
  table.finish(session, sequence, Bytes(result));
  return result;
}

/// One session is closed; of the others one has a result, and one that is too large, the other
/// none.
SessionTable sample() {
  SessionTable table;
  table.open();
  table.open();
  table.close(id(1));
  run(table, id(2), 3, 3, "abc");
  run(table, id(2), 4, 3, std::string(kSessionResultBytesMax + 1, 'l'));
  table.open();
  return table;
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const char* digits = "0123456789abcdef";
    text += digits[static_cast<unsigned char>(c) >> 4U];
    text += digits[static_cast<unsigned char>(c) & 15U];
  }
  return text;
}

TEST(SessionBytes, ThoseWithAnOwnerArePinned) {
  SessionTable table;
  table.open("ann");
  const std::string bytes(table.encode(id(1))->view());
  EXPECT_EQ(hex(bytes),
            "02"
            "03000000"
            "616e6e"
            "0000000000000000"
            "0100000000000000"
            "00000000");
  SessionTable other;
  other.restore_newest(id(1));
  ASSERT_TRUE(other.restore(id(1), bytes));
  EXPECT_EQ(other, table);
  EXPECT_EQ(SessionTable::decode_all(table.encode_all().view()).value(), table);
  SessionTable third;
  third.restore_newest(id(1));
  std::string empty = bytes;
  empty[1] = 0;
  EXPECT_FALSE(third.restore(id(1), empty));
  EXPECT_FALSE(third.restore(id(1), "\2" + std::string("\x81\0\0\0", 4) + std::string(200, 'x')));
}

TEST(SessionBytes, ArePinned) {
  SessionTable table;
  table.open();
  run(table, id(1), 3, 3, "abc");
  run(table, id(1), 5, 3, "d");
  EXPECT_EQ(hex(table.encode(id(1))->view()),
            "01"
            "0200000000000000"
            "0300000000000000"
            "02000000"
            "0300000000000000"
            "03000000"
            "616263"
            "0500000000000000"
            "01000000"
            "64");
  SessionTable two;
  two.restore_newest(id(7));
  ASSERT_TRUE(two.restore(id(6), SessionTable(sample()).encode(id(3))->view()));
  EXPECT_EQ(hex(two.encode_all().view()),
            "01"
            "0700000000000000"
            "01000000"
            "0600000000000000"
            "15000000"
            "01"
            "0000000000000000"
            "0100000000000000"
            "00000000");
}

TEST(SessionBytes, AreTheWholeState) {
  const SessionTable table = sample();
  const SessionTable restored = SessionTable::decode_all(table.encode_all().view()).value();
  EXPECT_EQ(restored, table);
  EXPECT_EQ(restored.encode_all(), table.encode_all());
  SessionTable pieces;
  pieces.restore_newest(table.newest());
  for (const SessionTable::Session& session : table.list()) {
    ASSERT_TRUE(pieces.restore(session.id, table.encode(session.id)->view()));
  }
  EXPECT_EQ(pieces, table);
  SessionTable later = table;
  later.touch(id(3));
  EXPECT_FALSE(later == table);
}

TEST(SessionBytes, EveryTruncationAndEveryAdditionIsRefused) {
  const SessionTable table = sample();
  const std::string all(table.encode_all().view());
  for (std::size_t size = 0; size < all.size(); ++size) {
    const auto decoded = SessionTable::decode_all(std::string_view(all).substr(0, size));
    ASSERT_FALSE(decoded) << size;
    ASSERT_EQ(decoded.error().code, ErrorCode::malformed);
  }
  EXPECT_FALSE(SessionTable::decode_all(all + '\0'));
  const std::string one(table.encode(id(2))->view());
  for (std::size_t size = 0; size <= one.size(); ++size) {
    SessionTable empty;
    empty.restore_newest(id(2));
    const std::string bytes = size == one.size() ? one + '\0' : one.substr(0, size);
    const auto restored = empty.restore(id(2), bytes);
    ASSERT_FALSE(restored) << size;
    ASSERT_EQ(restored.error().code, ErrorCode::malformed);
    ASSERT_EQ(empty.size(), 0U) << "an error changes nothing";
  }
}

// Of any change of the bytes: refused, or a state whose bytes these are.
TEST(SessionBytes, HaveOneReading) {
  const std::string all(sample().encode_all().view());
  for (std::size_t at = 0; at < all.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = all;
      changed[at] = static_cast<char>(static_cast<unsigned char>(changed[at]) ^ (1U << bit));
      const auto decoded = SessionTable::decode_all(changed);
      if (!decoded) continue;
      ASSERT_EQ(decoded.value().encode_all().view(), changed) << at << " " << bit;
    }
  }
}

TEST(SessionBytes, AnotherFormatIsRefusedWithBothNumbers) {
  for (int part = 0; part < 2; ++part) {
    const SessionTable table = sample();
    std::string bytes(part == 0 ? table.encode_all().view() : table.encode(id(2))->view());
    const int newest = part == 0 ? 1 : 2;
    bytes[0] = static_cast<char>(newest + 1);
    SessionTable empty;
    empty.restore_newest(id(9));
    const Error error =
        part == 0 ? SessionTable::decode_all(bytes).error() : empty.restore(id(2), bytes).error();
    EXPECT_EQ(error.code, ErrorCode::unsupported_format);
    const std::string both = "format " + std::to_string(newest + 1) + ", this build knows format " +
                             std::to_string(newest);
    EXPECT_NE(error.message.find(both), std::string::npos);
  }
}

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

std::string session_bytes(std::uint64_t answered_below,
                          const std::vector<std::pair<std::uint64_t, std::string>>& results) {
  std::string out(1, '\1');
  put(out, 0, 8);
  put(out, answered_below, 8);
  put(out, results.size(), 4);
  for (const auto& [sequence, result] : results) {
    put(out, sequence, 8);
    put(out, result.size(), 4);
    out += result;
  }
  return out;
}

TEST(SessionBytes, WhatNoTableCouldHaveWrittenIsRefused) {
  SessionTable table;
  table.restore_newest(id(3));
  EXPECT_TRUE(table.restore(id(2), session_bytes(5, {{5, "a"}, {132, ""}})));
  const auto refused = [&](std::uint64_t session, const std::string& bytes) {
    const auto restored = table.restore(id(session), bytes);
    return !restored && restored.error().code == ErrorCode::malformed;
  };
  EXPECT_TRUE(refused(1, session_bytes(0, {}))) << "sequences begin at 1";
  EXPECT_TRUE(refused(1, session_bytes(5, {{4, "a"}}))) << "below the window";
  EXPECT_TRUE(refused(1, session_bytes(5, {{133, "a"}}))) << "above the window";
  EXPECT_TRUE(refused(1, session_bytes(5, {{6, "a"}, {6, "a"}})));
  EXPECT_TRUE(refused(1, session_bytes(5, {{7, "a"}, {6, "a"}})));
  EXPECT_TRUE(
      refused(1, session_bytes(5, {{5, std::string(kSessionResultBytesMax, 'x')}, {6, "x"}})));
  EXPECT_TRUE(refused(0, session_bytes(1, {}))) << "the id of none";
  EXPECT_TRUE(refused(4, session_bytes(1, {}))) << "never given";
  EXPECT_TRUE(refused(2, session_bytes(1, {}))) << "twice";
  EXPECT_EQ(table.size(), 1U);
  SessionTable many;
  many.restore_newest(id(kSessionsMax + 1));
  for (std::uint64_t i = 1; i <= kSessionsMax; ++i) {
    ASSERT_TRUE(many.restore(id(i), session_bytes(1, {})));
  }
  const auto one_more = many.restore(id(kSessionsMax + 1), session_bytes(1, {}));
  EXPECT_FALSE(one_more);
  EXPECT_EQ(many.size(), kSessionsMax);
}

}  // namespace
}  // namespace leasehold::replica
