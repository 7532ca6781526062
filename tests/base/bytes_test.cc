#include <leasehold/base/bytes.h>

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

namespace leasehold {
namespace {

TEST(Bytes, DefaultIsEmpty) {
  const Bytes bytes;
  EXPECT_TRUE(bytes.empty());
  EXPECT_EQ(bytes.size(), 0U);
  EXPECT_EQ(bytes.view(), "");
}

TEST(Bytes, AnEmptyStringIsTheDefault) {
  EXPECT_EQ(Bytes(std::string()), Bytes());
  EXPECT_EQ(Bytes(std::string_view()), Bytes());
}

TEST(Bytes, ALiteralIsAText) {
  EXPECT_EQ(Bytes("text").view(), "text");
  EXPECT_EQ(Bytes(""), Bytes());
}

TEST(Bytes, CopiesAViewAndOutlivesIt) {
  std::string text = "payload";
  const Bytes bytes{std::string_view(text)};
  text.assign("changed");
  EXPECT_EQ(bytes.view(), "payload");
}

TEST(Bytes, TakesOverALongStringWithoutCopyingIt) {
  std::string text(4096, 'x');
  const char* content = text.data();
  const Bytes bytes(std::move(text));
  EXPECT_EQ(bytes.data(), content);
}

TEST(Bytes, AShortStringSurvivesTheMoveOfItsOwner) {
  // Short strings live inside the string object, so the view must be of the owner's new place.
  Bytes bytes(std::string("short"));
  const Bytes moved = std::move(bytes);
  EXPECT_EQ(moved.view(), "short");
}

TEST(Bytes, ZeroBytesAreContent) {
  const Bytes bytes(std::string("a\0b", 3));
  EXPECT_EQ(bytes.size(), 3U);
  EXPECT_EQ(bytes.view()[2], 'b');
}

TEST(Bytes, CopiesAndSlicesShareTheAllocation) {
  const Bytes bytes(std::string(100, 'y'));
  const Bytes copy = bytes;
  EXPECT_EQ(copy.data(), bytes.data());
  EXPECT_EQ(bytes.slice(10, 5).data(), bytes.data() + 10);
}

TEST(Bytes, ASliceOutlivesWhatItWasCutFrom) {
  std::optional<Bytes> whole(Bytes(std::string("0123456789")));
  const Bytes part = whole->slice(2, 3);
  whole.reset();
  EXPECT_EQ(part.view(), "234");
}

TEST(Bytes, ASliceEndsWithTheContent) {
  const Bytes bytes(std::string("0123456789"));
  EXPECT_EQ(bytes.slice(8, 100).view(), "89");
  EXPECT_EQ(bytes.slice(4).view(), "456789");
  EXPECT_TRUE(bytes.slice(10).empty());
}

TEST(Bytes, EqualityIsOfContent) {
  EXPECT_EQ(Bytes(std::string("abc")), Bytes(std::string("xabc")).slice(1));
  EXPECT_FALSE(Bytes(std::string("abc")) == Bytes(std::string("abd")));
  EXPECT_FALSE(Bytes(std::string("abc")) == Bytes(std::string("ab")));
}

}  // namespace
}  // namespace leasehold
