#include <leasehold/base/coding.h>

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>

namespace leasehold {
namespace {

using namespace std::string_view_literals;

constexpr std::uint8_t kMax8 = std::numeric_limits<std::uint8_t>::max();
constexpr std::uint16_t kMax16 = std::numeric_limits<std::uint16_t>::max();
constexpr std::uint32_t kMax32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMax64 = std::numeric_limits<std::uint64_t>::max();

template <class Writer>
std::string one_of_each() {
  std::string out = "<";
  Writer to(out);
  to.u8(0x01);
  to.u16(0x0203);
  to.u32(0x04050607);
  to.u64(0x08090a0b0c0d0e0fU);
  to.bytes("raw");
  to.sized("ab");
  return out;
}

TEST(Coding, LittlePutsTheLowestByteFirst) {
  EXPECT_EQ(one_of_each<LittleWriter>(),
            "<\x01\x03\x02\x07\x06\x05\x04\x0f\x0e\x0d\x0c\x0b\x0a\x09\x08raw\x02\0\0\0ab"sv);
}

TEST(Coding, BigPutsTheHighestByteFirst) {
  EXPECT_EQ(one_of_each<BigWriter>(),
            "<\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0fraw\0\0\0\x02"
            "ab"sv);
}

TEST(Coding, AReaderOfTheSameOrderReadsWhatWasWritten) {
  const auto check = [](auto in) {
    EXPECT_EQ(in.u8(), '<');
    EXPECT_EQ(in.u8(), 0x01);
    EXPECT_EQ(in.u16(), 0x0203);
    EXPECT_EQ(in.u32(), 0x04050607U);
    EXPECT_EQ(in.u64(), 0x08090a0b0c0d0e0fU);
    EXPECT_EQ(in.take(3), "raw");
    EXPECT_EQ(in.state(), ReadState::more);
    EXPECT_EQ(in.sized(), "ab");
    EXPECT_EQ(in.state(), ReadState::at_end);
  };
  check(LittleReader(one_of_each<LittleWriter>()));
  check(BigReader(one_of_each<BigWriter>()));
}

template <class Writer, class Reader>
void expect_extremes_survive() {
  for (const bool high : {false, true}) {
    std::string out;
    Writer to(out);
    to.u8(high ? kMax8 : std::uint8_t{0});
    to.u16(high ? kMax16 : std::uint16_t{0});
    to.u32(high ? kMax32 : 0);
    to.u64(high ? kMax64 : 0);
    EXPECT_EQ(out, std::string(15, high ? '\xff' : '\0'));
    Reader in(out);
    EXPECT_EQ(in.u8(), high ? kMax8 : 0);
    EXPECT_EQ(in.u16(), high ? kMax16 : 0);
    EXPECT_EQ(in.u32(), high ? kMax32 : 0);
    EXPECT_EQ(in.u64(), high ? kMax64 : 0);
    EXPECT_TRUE(in.at_end());
  }
}

TEST(Coding, ZeroAndTheLargestValuesSurvive) {
  expect_extremes_survive<LittleWriter, LittleReader>();
  expect_extremes_survive<BigWriter, BigReader>();
}

TEST(Coding, NoBytesAreAtTheirEndUntilOneIsRead) {
  LittleReader in("");
  EXPECT_EQ(in.state(), ReadState::at_end);
  EXPECT_EQ(in.take(0), "");
  EXPECT_EQ(in.take_rest(), "");
  EXPECT_EQ(in.state(), ReadState::at_end);
  EXPECT_EQ(in.u8(), 0);
  EXPECT_EQ(in.state(), ReadState::cut_short);
  EXPECT_FALSE(in.ok());
}

/// `read` takes `width` bytes; it must not be content with one less.
template <class Reader, class Read>
void expect_one_byte_short_is_seen(std::size_t width, const Read& read) {
  const std::string bytes(width, '\x11');
  Reader whole(bytes);
  EXPECT_NE(read(whole), 0U);
  EXPECT_EQ(whole.state(), ReadState::at_end);
  Reader in(std::string_view(bytes).substr(1));
  EXPECT_EQ(read(in), 0U);
  EXPECT_EQ(in.state(), ReadState::cut_short);
}

template <class Reader>
void expect_each_width_is_checked() {
  expect_one_byte_short_is_seen<Reader>(1, [](Reader& in) { return in.u8(); });
  expect_one_byte_short_is_seen<Reader>(2, [](Reader& in) { return in.u16(); });
  expect_one_byte_short_is_seen<Reader>(4, [](Reader& in) { return in.u32(); });
  expect_one_byte_short_is_seen<Reader>(8, [](Reader& in) { return in.u64(); });
  expect_one_byte_short_is_seen<Reader>(3, [](Reader& in) { return in.take(3).size(); });
}

TEST(Coding, OneByteShortGivesZeroAndSaysSo) {
  expect_each_width_is_checked<LittleReader>();
  expect_each_width_is_checked<BigReader>();
}

TEST(Coding, AfterAReadThatWasCutShortNothingIsRead) {
  BigReader in("\x01\x02\x03"sv);
  EXPECT_EQ(in.u32(), 0U);
  EXPECT_EQ(in.u8(), 0U);
  EXPECT_EQ(in.rest(), "");
  EXPECT_EQ(in.take(1), "");
  EXPECT_EQ(in.take_rest(), "");
  EXPECT_EQ(in.sized(), "");
  EXPECT_EQ(in.state(), ReadState::cut_short);
  EXPECT_FALSE(in.at_end());
}

TEST(Coding, ALengthFromOutsideIsNotTrusted) {
  BigReader one_too_many(
      "\0\0\0\x04"
      "abc"sv);
  EXPECT_EQ(one_too_many.sized(), "");
  EXPECT_EQ(one_too_many.state(), ReadState::cut_short);
  LittleReader largest(
      "\xff\xff\xff\xff"
      "abc"sv);
  EXPECT_EQ(largest.sized(), "");
  EXPECT_FALSE(largest.ok());
  LittleReader beyond("abc");
  EXPECT_EQ(beyond.take(kMax64), "");
  EXPECT_FALSE(beyond.ok());
}

TEST(Coding, StringsAreViewsOfTheBytes) {
  const std::string bytes(
      "\0\0\0\x02"
      "abc"sv);
  BigReader in(bytes);
  EXPECT_EQ(in.sized().data(), bytes.data() + 4);
  EXPECT_EQ(in.rest().data(), bytes.data() + 6);
  EXPECT_EQ(in.take_rest(), "c");
  EXPECT_TRUE(in.at_end());
}

TEST(Coding, AChecksumIsWrittenOverItsPlace) {
  std::string little = "<....>";
  LittleWriter(little).overwrite_u32(1, 0x01020304);
  EXPECT_EQ(little, "<\x04\x03\x02\x01>");
  std::string big = "....";
  BigWriter(big).overwrite_u32(0, 0x01020304);
  EXPECT_EQ(big, "\x01\x02\x03\x04");
}

TEST(CodingDeathTest, OverwritingBehindTheEndIsABug) {
  std::string out = "....";
  EXPECT_DEATH(LittleWriter(out).overwrite_u32(1, 0), "");
  EXPECT_DEATH(LittleWriter(out).overwrite_u32(kMax64, 0), "");
}

}  // namespace
}  // namespace leasehold
