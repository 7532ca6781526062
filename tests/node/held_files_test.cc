// Digests of the files of a snapshot, and what of one a replica finds in files of its own.
#include <leasehold/base/random.h>
#include <leasehold/node/file_snapshot.h>
#include <leasehold/tests/base/temporary_folder.h>
#include <leasehold/tls/digest.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

namespace leasehold::node {
namespace {

constexpr std::uint64_t kMiB = kDigestBlockBytes;

class BytesSnapshot final : public replica::Snapshot {
 public:
  explicit BytesSnapshot(std::string held) : bytes(std::move(held)) {}
  raft::Index last() const override { return raft::Index(7); }
  std::uint64_t size() const override { return bytes.size(); }
  Result<void> read(std::uint64_t offset, char* to, std::size_t count) const override {
    if (offset + count > bytes.size()) return Error{ErrorCode::io, "beyond the end"};
    bytes.copy(to, count, static_cast<std::size_t>(offset));
    return {};
  }
  std::string bytes;
};

std::string noise(std::size_t bytes, std::uint64_t seed) {
  Random random(seed);
  std::string text(bytes, '\0');
  for (char& byte : text) byte = static_cast<char>(random.below(256));
  return text;
}

class HeldFilesTest : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_.path(name), std::ios::binary) << bytes;
    return folder_.path(name);
  }
  std::string digests(const std::string& path) {
    const auto made = digests_of_file(path);
    EXPECT_TRUE(made.ok());
    return made.ok() ? made.value() : "";
  }
  /// With digests of all files.
  BytesSnapshot snapshot_of(const std::vector<std::string>& names) {
    std::vector<SnapshotPart> parts;
    for (const std::string& name : names) {
      parts.push_back({name, folder_.path(name), digests(folder_.path(name))});
    }
    const auto made = snapshot_of_files(raft::Index(7), parts);
    if (!made.ok()) {
      ADD_FAILURE() << made.error().message;
      return BytesSnapshot("");
    }
    std::string all(static_cast<std::size_t>(made.value()->size()), '\0');
    EXPECT_TRUE(made.value()->read(0, all.data(), all.size()).ok());
    return BytesSnapshot(std::move(all));
  }
  PartLookup here() {
    return [this](const std::string& name, std::uint64_t) { return here_[name]; };
  }

  TemporaryFolder folder_;
  std::map<std::string, std::string> here_;  ///< paths, by name
};

TEST_F(HeldFilesTest, ADigestIsOfAMiB) {
  EXPECT_EQ(digests(put("empty", "")), "");
  EXPECT_EQ(digests(put("one", "x")), tls::sha256("x"));
  const std::string text = noise(kMiB + 1, 1);
  EXPECT_EQ(digests(put("more", text)),
            tls::sha256(text.substr(0, kMiB)) + tls::sha256(text.substr(kMiB)));
  EXPECT_EQ(digests(put("whole", text.substr(1))), tls::sha256(text.substr(1)));
  EXPECT_FALSE(digests_of_file(folder_.path("none")).ok());
  EXPECT_FALSE(digests_of_file(folder_.path()).ok()) << "a folder";
}

TEST_F(HeldFilesTest, DigestsOfAnotherSizeAreRefused) {
  const std::string path = put("a", noise(kMiB + 1, 1));
  const std::string made = digests(path);
  const auto refused = snapshot_of_files(raft::Index(7), {{"a", path, made.substr(32)}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
}

TEST_F(HeldFilesTest, OnlyASnapshotWithDigestsHasTheNewFormat) {
  put("a", "first");
  EXPECT_EQ(snapshot_of({"a"}).bytes.substr(4, 4), std::string("\2\0\0\0", 4));
  const auto plain = snapshot_of_files(raft::Index(7), {{"a", folder_.path("a"), ""}});
  std::string bytes(4, '\0');
  ASSERT_TRUE(plain.value()->read(4, bytes.data(), 4).ok());
  EXPECT_EQ(bytes, std::string("\1\0\0\0", 4));
}

TEST_F(HeldFilesTest, WhatArrivedIsCheckedAgainstTheDigestsAsItIsUnpacked) {
  put("a", noise(kMiB + 5, 1));
  put("b", "second");
  BytesSnapshot snapshot = snapshot_of({"a", "b"});
  const auto names = unpack_files(snapshot, folder_.path("good"));
  ASSERT_TRUE(names.ok()) << names.error().message;
  std::ifstream file(folder_.path("good/a"), std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), noise(kMiB + 5, 1));
  snapshot.bytes.back() = '!';
  const auto refused = unpack_files(snapshot, folder_.path("bad"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::corrupted);
  EXPECT_NE(refused.error().message.find("file b"), std::string::npos) << refused.error().message;
}

TEST_F(HeldFilesTest, TheTableHasToBeThereFirst) {
  put("a", "first");
  const BytesSnapshot snapshot = snapshot_of({"a"});
  here_["a"] = folder_.path("a");
  const std::uint64_t head = snapshot.size() - 5;
  EXPECT_EQ(held_files(snapshot, 1, here()).ask_again_at, 12U);
  EXPECT_EQ(held_files(snapshot, 12, here()).ask_again_at, head);
  EXPECT_EQ(held_files(snapshot, head - 1, here()).ask_again_at, head);
  const replica::HeldAnswer answer = held_files(snapshot, head, here());
  EXPECT_EQ(answer.ask_again_at, 0U);
  ASSERT_NE(answer.blocks, nullptr);
  const auto block = answer.blocks->next(head);
  ASSERT_TRUE(block.has_value());
  EXPECT_EQ(block->offset, head);
  EXPECT_EQ(block->size, 5U);
  EXPECT_EQ(block->sha256, tls::sha256("first"));
  EXPECT_FALSE(answer.blocks->next(snapshot.size()).has_value());
}

TEST_F(HeldFilesTest, BlocksAreThoseOfTheFilesThatAreHere) {
  put("a", noise(2 * kMiB + 7, 1));
  put("b", noise(kMiB, 2));
  put("empty", "");
  put("c", noise(3, 3));
  const BytesSnapshot snapshot = snapshot_of({"a", "b", "empty", "c"});
  const std::uint64_t a = snapshot.size() - (3 * kMiB + 10);
  const std::uint64_t c = snapshot.size() - 3;
  // One that has grown since: its first MiB is what it was.
  here_["a"] = put("other", noise(2 * kMiB + 7, 1).substr(0, kMiB + 100));
  here_["c"] = folder_.path("c");
  const replica::HeldAnswer answer = held_files(snapshot, a, here());
  ASSERT_NE(answer.blocks, nullptr);
  std::string bytes(kMiB, '\0');
  std::vector<std::uint64_t> offsets;
  std::vector<bool> good;
  for (auto at = answer.blocks->next(0); at; at = answer.blocks->next(at->offset + at->size)) {
    offsets.push_back(at->offset);
    good.push_back(answer.blocks->read(*at, bytes.data()).ok() &&
                   tls::sha256(std::string_view(bytes).substr(0, at->size)) == at->sha256 &&
                   snapshot.bytes.compare(at->offset, at->size, bytes, 0, at->size) == 0);
  }
  EXPECT_EQ(offsets, (std::vector<std::uint64_t>{a, a + kMiB, a + 2 * kMiB, c}));
  EXPECT_EQ(good, (std::vector<bool>{true, false, false, true}));
  const auto inside = answer.blocks->next(a + kMiB + 5);
  ASSERT_TRUE(inside.has_value());
  EXPECT_EQ(inside->offset, a + kMiB) << "the rest of a block is copied, too";
}

TEST_F(HeldFilesTest, AFileThatIsGoneOrNoFileIsNotHere) {
  put("a", "first");
  const BytesSnapshot snapshot = snapshot_of({"a"});
  const std::uint64_t head = snapshot.size() - 5;
  EXPECT_EQ(held_files(snapshot, head, here()).blocks, nullptr) << "nobody knows it";
  char bytes[5];
  for (const char* name : {"none", "."}) {
    here_["a"] = folder_.path(name);
    const replica::HeldAnswer answer = held_files(snapshot, head, here());
    ASSERT_NE(answer.blocks, nullptr);
    EXPECT_FALSE(answer.blocks->read(*answer.blocks->next(head), bytes).ok()) << name;
  }
}

// What a peer sends is not believed: no damage of the table makes a block that cannot be.
TEST_F(HeldFilesTest, ADamagedTableHoldsNothing) {
  put("a", "first");
  const BytesSnapshot snapshot = snapshot_of({"a"});
  here_["a"] = folder_.path("a");
  const std::uint64_t head = snapshot.size() - 5;
  for (std::size_t i = 0; i < head; ++i) {
    BytesSnapshot damaged = snapshot;
    damaged.bytes[i] = static_cast<char>(damaged.bytes[i] ^ 0x10);
    const replica::HeldAnswer answer = held_files(damaged, head, here());
    EXPECT_EQ(answer.blocks, nullptr) << i;
    EXPECT_LE(answer.ask_again_at, damaged.size()) << i;
  }
}

}  // namespace
}  // namespace leasehold::node
