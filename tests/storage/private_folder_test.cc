// Folders and files that only their owner may use, also those of an earlier version.
#include <leasehold/storage/posix_disk.h>
#include <leasehold/storage/private_folder.h>
#include <leasehold/tests/base/temporary_folder.h>

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace leasehold::storage {
namespace {

namespace fs = std::filesystem;

/// Any user but root.
constexpr uid_t kSomebody = 4711;

unsigned mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777U;
}

/// The umask that leaves everybody every right: what is private is so by its own mode.
class PrivateFolderTest : public ::testing::Test {
 protected:
  PrivateFolderTest() : before_(::umask(0)) {}
  ~PrivateFolderTest() override { ::umask(before_); }

  std::string path(const std::string& name) const { return folder_.path(name); }
  std::string file(const std::string& name, mode_t mode) const {
    std::ofstream(path(name)) << "content";
    EXPECT_EQ(::chmod(path(name).c_str(), mode), 0);
    return path(name);
  }

 private:
  TemporaryFolder folder_;
  const mode_t before_;
};

TEST_F(PrivateFolderTest, ANewFolderAndThoseAboveItAreTheOwnersAlone) {
  const auto made = make_private_folder(path("a/b/c"));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE(made.value());
  for (const char* name : {"a", "a/b", "a/b/c"}) EXPECT_EQ(mode_of(path(name)), 0700U) << name;
  ASSERT_TRUE(make_private_folder(path("d/e/")));
  EXPECT_EQ(mode_of(path("d/e")), 0700U);
}

TEST_F(PrivateFolderTest, AFolderOfAnEarlierVersionIsTightenedOnce) {
  ASSERT_EQ(::mkdir(path("old").c_str(), 0775), 0);
  EXPECT_TRUE(make_private_folder(path("old")).value());
  EXPECT_EQ(mode_of(path("old")), 0700U);
  EXPECT_FALSE(make_private_folder(path("old")).value());
}

TEST_F(PrivateFolderTest, AFolderAboveThatExistsKeepsItsMode) {
  ASSERT_EQ(::mkdir(path("shared").c_str(), 0755), 0);
  ASSERT_TRUE(make_private_folder(path("shared/own")));
  EXPECT_EQ(mode_of(path("shared")), 0755U);
}

TEST_F(PrivateFolderTest, AFolderOfAnotherUserIsRefusedAndSaysWhatToDo) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::mkdir(path("theirs").c_str(), 0777), 0);
  ASSERT_EQ(::chown(path("theirs").c_str(), kSomebody, kSomebody), 0);
  const auto refused = make_private_folder(path("theirs"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(refused.error().message.find("belongs to the user with the number 4711"),
            std::string::npos);
  EXPECT_NE(refused.error().message.find("chown"), std::string::npos);
  EXPECT_EQ(mode_of(path("theirs")), 0777U);
}

TEST_F(PrivateFolderTest, WhatIsNoFolderIsAnError) {
  file("file", 0600);
  EXPECT_EQ(make_private_folder(path("file")).error().code, ErrorCode::io);
  EXPECT_EQ(make_private_folder(path("file/below")).error().code, ErrorCode::io);
}

TEST_F(PrivateFolderTest, ContentIsTightenedAtEachDepth) {
  ASSERT_EQ(::mkdir(path("log").c_str(), 0755), 0);
  file("log/segment", 0644);
  file("mark", 0666);
  file("good", 0600);
  EXPECT_EQ(tighten_content(path("")).value(), 3U);
  EXPECT_EQ(mode_of(path("log")), 0700U);
  EXPECT_EQ(mode_of(path("log/segment")), 0600U);
  EXPECT_EQ(mode_of(path("mark")), 0600U);
  EXPECT_EQ(tighten_content(path("")).value(), 0U);
}

TEST_F(PrivateFolderTest, ALinkIsNotFollowed) {
  ASSERT_EQ(::mkdir(path("data").c_str(), 0700), 0);
  ASSERT_EQ(::mkdir(path("elsewhere").c_str(), 0755), 0);
  const std::string target = file("elsewhere/file", 0644);
  fs::create_symlink(target, path("data/to_file"));
  fs::create_symlink(path("elsewhere"), path("data/to_folder"));
  EXPECT_EQ(tighten_content(path("data")).value(), 0U);
  EXPECT_EQ(mode_of(target), 0644U);
  EXPECT_EQ(mode_of(path("elsewhere")), 0755U);
}

TEST_F(PrivateFolderTest, APipeIsLeftAloneAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0644), 0);
  EXPECT_EQ(tighten_content(path("")).value(), 0U);
}

TEST_F(PrivateFolderTest, ContentOfAnotherUserIsRefusedExceptLostAndFound) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  for (const char* name : {"lost+found", "state"}) {
    ASSERT_EQ(::mkdir(path(name).c_str(), 0755), 0);
  }
  ASSERT_EQ(::chown(path("lost+found").c_str(), kSomebody, kSomebody), 0);
  EXPECT_EQ(tighten_content(path("")).value(), 1U);
  EXPECT_EQ(mode_of(path("lost+found")), 0755U);
  ASSERT_EQ(::chown(file("state/CURRENT", 0600).c_str(), kSomebody, kSomebody), 0);
  const auto refused = tighten_content(path(""));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("state/CURRENT belongs to the user"), std::string::npos);
}

TEST_F(PrivateFolderTest, ADiskMakesFilesForItsOwnerOnly) {
  ASSERT_EQ(::mkdir(path("log").c_str(), 0755), 0);
  const auto disk = open_posix_disk(path("log"));
  ASSERT_TRUE(disk) << disk.error().message;
  EXPECT_EQ(mode_of(path("log")), 0700U);
  ASSERT_TRUE(disk.value()->create("segment", "head", 4096));
  EXPECT_EQ(mode_of(path("log/segment")), 0600U);
}

}  // namespace
}  // namespace leasehold::storage
