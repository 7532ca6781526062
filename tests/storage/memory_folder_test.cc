#include <leasehold/storage/memory_folder.h>

#include <gtest/gtest.h>

namespace leasehold::storage {
namespace {

std::string read_all(const DiskFile& file) {
  std::string bytes(file.size(), '?');
  EXPECT_TRUE(file.read(0, bytes.data(), bytes.size()).ok());
  return bytes;
}

TEST(MemoryFolder, FilesStayBetweenOpens) {
  MemoryFolder folder;
  {
    auto disk = folder.open();
    ASSERT_TRUE(disk.ok());
    auto file = disk.value()->create("b", "head", 6);
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE(file.value()->write(4, "xy").ok());
    EXPECT_TRUE(file.value()->sync().ok());
    ASSERT_TRUE(disk.value()->create("a", "", 1).ok());
  }
  auto again = folder.open();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value()->list().value(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(read_all(*again.value()->open("b").value()), "headxy");
  EXPECT_EQ(again.value()->load("b", 3).value(), "hea");
  EXPECT_EQ(again.value()->load("c", 3).value(), std::nullopt);
  EXPECT_FALSE(again.value()->open("c").ok());
  EXPECT_EQ(folder.bytes(), 7U);
}

TEST(MemoryFolder, OneHasItAtATime) {
  MemoryFolder folder;
  auto first = folder.open();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(folder.open().error().code, ErrorCode::in_use);
  std::move(first).value().reset();
  EXPECT_TRUE(folder.open().ok());
}

TEST(MemoryFolder, ItIsFullAsADiskIs) {
  MemoryFolder folder(10);
  auto disk = folder.open();
  ASSERT_TRUE(disk.ok());
  ASSERT_TRUE(disk.value()->create("a", "", 6).ok());
  EXPECT_EQ(disk.value()->free_bytes().value(), 4U);
  EXPECT_EQ(disk.value()->create("b", "", 5).error().code, kNoSpace);
  EXPECT_EQ(disk.value()->list().value(), (std::vector<std::string>{"a"}));
  // In place of itself it needs no more.
  EXPECT_TRUE(disk.value()->create("a", "", 10).ok());
  EXPECT_EQ(disk.value()->free_bytes().value(), 0U);
  EXPECT_TRUE(disk.value()->remove("a").ok());
  EXPECT_TRUE(disk.value()->remove("a").ok());
  EXPECT_EQ(disk.value()->free_bytes().value(), 10U);
}

TEST(MemoryFolder, AFileThatIsRemovedStaysReadable) {
  MemoryFolder folder;
  auto disk = folder.open();
  ASSERT_TRUE(disk.ok());
  const auto file = disk.value()->create("a", "old", 3).value();
  ASSERT_TRUE(disk.value()->create("a", "new", 3).ok());
  ASSERT_TRUE(disk.value()->remove("a").ok());
  EXPECT_EQ(read_all(*file), "old");
}

TEST(MemoryFolder, NothingLiesBeyondTheEndOfAFile) {
  MemoryFolder folder;
  auto disk = folder.open();
  ASSERT_TRUE(disk.ok());
  const auto file = disk.value()->create("a", "", 3).value();
  char byte = 0;
  EXPECT_TRUE(file->read(2, &byte, 1).ok());
  EXPECT_FALSE(file->read(3, &byte, 1).ok());
  EXPECT_FALSE(file->write(2, "xy").ok());
  EXPECT_FALSE(file->write(static_cast<std::uint64_t>(-1), "xy").ok());
}

}  // namespace
}  // namespace leasehold::storage
