// What a data directory knows of its backup: the two files, damage, and a restoration that a crash
// interrupts.
#include <leasehold/base/random.h>
#include <leasehold/node/node_restored.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace leasehold::node {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kGeneration = 0x5a17c0ffee123456U;
const Restored kRestored{kGeneration, raft::Index(4711)};

class RestoredTest : public ::testing::Test {
 protected:
  RestoredTest() {
    std::string name = (fs::temp_directory_path() / "leasehold-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~RestoredTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::string dir() const { return (folder_ / "deep" / "data").string(); }

  fs::path folder_;
};

TEST_F(RestoredTest, ADirectoryThatWasNeverRestoredHasNone) {
  ASSERT_TRUE(load_restored(dir()));
  EXPECT_EQ(load_restored(dir()).value(), std::nullopt);
  fs::create_directories(dir());
  EXPECT_EQ(load_restored(dir()).value(), std::nullopt);
}

TEST_F(RestoredTest, OneThatWasBegunIsRefusedUntilItIsFinished) {
  EXPECT_FALSE(restoration_begun(dir()).value());
  ASSERT_TRUE(begin_restoration(dir()));
  EXPECT_TRUE(restoration_begun(dir()).value());
  const auto half = load_restored(dir());
  ASSERT_FALSE(half);
  EXPECT_EQ(half.error().code, ErrorCode::corrupted);
  EXPECT_NE(half.error().message.find("run the same leasehold restore again"), std::string::npos);
  EXPECT_NE(half.error().message.find(dir()), std::string::npos);
  // A crash came between the two files of the end: it is begun anew.
  std::ofstream(dir() + "/RESTORED") << encode_restored(kRestored);
  EXPECT_FALSE(load_restored(dir()));
  ASSERT_TRUE(begin_restoration(dir()));
  ASSERT_TRUE(finish_restoration(dir(), kRestored));
  EXPECT_FALSE(restoration_begun(dir()).value());
  EXPECT_EQ(load_restored(dir()).value(), kRestored);
}

// Pinned: it stands in data directories.
TEST(RestoredFormat, Golden) {
  const std::string text = encode_restored(kRestored);
  EXPECT_EQ(text.substr(0, text.find("check")),
            "leasehold-restored 1\ngeneration 5a17c0ffee123456\nindex 4711\n");
  EXPECT_EQ(decode_restored(text).value(), kRestored);
}

TEST(RestoredFormat, AnotherFormatNamesBothNumbers) {
  const auto refused = decode_restored("leasehold-restored 2\nwhatever\n");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported_format);
  EXPECT_NE(refused.error().message.find("format 2, this build knows 1"), std::string::npos);
}

TEST(RestoredFormat, OnlyTheOneTrueSpellingIsAccepted) {
  const std::string good = encode_restored(kRestored);
  const auto refused = [](const std::string& text) {
    const auto decoded = decode_restored(text);
    return !decoded && (decoded.error().code == ErrorCode::corrupted ||
                        decoded.error().code == ErrorCode::unsupported_format);
  };
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_TRUE(refused(good.substr(0, length))) << length;
  }
  EXPECT_TRUE(refused(good + "\n"));
  Random random(11);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string text = good;
      text[at] = static_cast<char>(text[at] ^ (1U << bit));
      EXPECT_TRUE(refused(text)) << at << " " << bit;
    }
  }
  for (int i = 0; i < 2000; ++i) {
    std::string text = good;
    for (std::uint64_t edits = random.below(4) + 1; edits > 0; --edits) {
      const std::size_t at = random.below(text.size());
      switch (random.below(3)) {
        case 0: text[at] = static_cast<char>(random.below(256)); break;
        case 1: text.erase(at, random.below(8)); break;
        default: text.insert(at, text.substr(random.below(text.size()), random.below(8))); break;
      }
      if (text.empty()) text = "x";
    }
    EXPECT_TRUE(text == good || refused(text)) << text;
  }
}

TEST_F(RestoredTest, WhatTheStateMachineHoldsHasToFit) {
  EXPECT_TRUE(check_new_log("d", std::nullopt, raft::Index(0)));
  EXPECT_TRUE(check_new_log("d", kRestored, kRestored.base));
  EXPECT_EQ(check_new_log("d", std::nullopt, raft::Index(7)).error().code,
            ErrorCode::wrong_cluster);
  EXPECT_EQ(check_new_log("d", kRestored, raft::Index(0)).error().code, ErrorCode::corrupted);
  EXPECT_EQ(check_new_log("d", kRestored, raft::Index(4712)).error().code, ErrorCode::corrupted);
}

}  // namespace
}  // namespace leasehold::node
