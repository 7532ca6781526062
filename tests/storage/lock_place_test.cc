#include <leasehold/storage/descriptor.h>
#include <leasehold/storage/lock_place.h>
#include <leasehold/storage/posix_disk.h>

#include <gtest/gtest.h>

#include <fcntl.h>

#include <filesystem>
#include <string>

namespace leasehold::storage {
namespace {

namespace fs = std::filesystem;

class LockPlace : public ::testing::Test {
 protected:
  LockPlace() { fs::create_directories(root_); }
  ~LockPlace() override { fs::remove_all(root_); }
  static std::uint64_t place(const fs::path& folder) {
    const Descriptor open(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return lock_place(open.get());
  }
  const fs::path root_ = fs::path(::testing::TempDir()) / "lock-place";
};

TEST_F(LockPlace, IsThatOfTheFolderUnderWhateverName) {
  fs::create_directory(root_ / "a");
  const std::uint64_t before = place(root_ / "a");
  ASSERT_NE(before, 0U);
  EXPECT_EQ(place(root_ / "a"), before);
  fs::rename(root_ / "a", root_ / "b");
  EXPECT_EQ(place(root_ / "b"), before);
}

TEST_F(LockPlace, OfACopyIsAnother) {
  fs::create_directory(root_ / "a");
  fs::copy(root_ / "a", root_ / "b", fs::copy_options::recursive);
  EXPECT_NE(place(root_ / "a"), place(root_ / "b"));
}

// So its number is not given to another folder while a process has it locked.
TEST_F(LockPlace, OfALockedFolderStaysItsOwnThoughItIsRemoved) {
  auto disk = open_posix_disk((root_ / "a").string());
  ASSERT_TRUE(disk.ok()) << disk.error().message;
  const std::uint64_t before = disk.value()->place();
  for (int i = 0; i < 20; ++i) {
    fs::remove_all(root_ / "a");
    fs::create_directory(root_ / "a");
    EXPECT_NE(place(root_ / "a"), before);
  }
}

// /proc keeps no locks for anybody.
TEST_F(LockPlace, IsUnknownWhereTheKernelKeepsNoLocks) {
  EXPECT_EQ(place("/proc"), 0U);
  EXPECT_EQ(lock_place(-1), 0U);
}

TEST_F(LockPlace, IsKnownOfADisk) {
  auto disk = open_posix_disk((root_ / "a").string());
  ASSERT_TRUE(disk.ok()) << disk.error().message;
  EXPECT_EQ(disk.value()->place(), place(root_ / "a"));
}

}  // namespace
}  // namespace leasehold::storage
