// Snapshots of files and of streams, and what comes back out of them.
#include <leasehold/base/random.h>
#include <leasehold/node/file_snapshot.h>
#include <leasehold/tests/base/temporary_folder.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace leasehold::node {
namespace {

constexpr raft::Index kLast{7};

/// Bytes that came from somewhere.
class PlainSnapshot final : public replica::Snapshot {
 public:
  explicit PlainSnapshot(std::string bytes) : bytes_(std::move(bytes)) {}
  raft::Index last() const override { return kLast; }
  std::uint64_t size() const override { return bytes_.size(); }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    if (offset + bytes > bytes_.size()) return Error{ErrorCode::io, "beyond the end"};
    bytes_.copy(to, bytes, offset);
    return {};
  }

 private:
  std::string bytes_;
};

std::string all_of(const replica::Snapshot& snapshot) {
  std::string bytes(snapshot.size(), '?');
  EXPECT_TRUE(snapshot.read(0, bytes.data(), bytes.size()).ok());
  return bytes;
}

class FileSnapshotTest : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_.path(name), std::ios::binary) << bytes;
    return folder_.path(name);
  }
  std::string get(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::shared_ptr<const replica::Snapshot> three_files() {
    auto made =
        snapshot_of_files(kLast, {{"b", put("one", "first")},
                                  {"empty", put("two", "")},
                                  {"a", put("three", std::string(3'000'000, 'x') + "end")}});
    EXPECT_TRUE(made.ok());
    return std::move(made).value();
  }

  TemporaryFolder folder_;
};

TEST_F(FileSnapshotTest, FilesComeBackAsTheyWere) {
  const auto snapshot = three_files();
  EXPECT_EQ(snapshot->last(), kLast);
  for (const char* name : {"one", "two", "three"}) std::filesystem::remove(folder_.path(name));
  const std::string to = folder_.path("to");
  const auto names = unpack_files(PlainSnapshot(all_of(*snapshot)), to);
  ASSERT_TRUE(names.ok()) << names.error().message;
  EXPECT_EQ(names.value(), (std::vector<std::string>{"b", "empty", "a"}));
  EXPECT_EQ(get(to + "/b"), "first");
  EXPECT_EQ(get(to + "/empty"), "");
  EXPECT_EQ(get(to + "/a"), std::string(3'000'000, 'x') + "end");
}

// A peer asks for chunks of any size, and again from any offset.
TEST_F(FileSnapshotTest, EveryPartIsThatOfTheWhole) {
  auto made = snapshot_of_files(
      kLast,
      {{"a", put("a", "")}, {"b", put("b", "12345")}, {"c", put("c", "")}, {"d", put("d", "678")}});
  ASSERT_TRUE(made.ok());
  const replica::Snapshot& snapshot = *made.value();
  const std::string whole = all_of(snapshot);
  for (std::size_t from = 0; from < whole.size(); ++from) {
    for (std::size_t bytes = 1; from + bytes <= whole.size(); ++bytes) {
      std::string part(bytes, '?');
      ASSERT_TRUE(snapshot.read(from, part.data(), bytes).ok());
      ASSERT_EQ(part, whole.substr(from, bytes)) << from << " " << bytes;
    }
  }
}

TEST_F(FileSnapshotTest, NoFilesAreASnapshotToo) {
  const auto made = snapshot_of_files(kLast, {});
  ASSERT_TRUE(made.ok());
  const auto names = unpack_files(*made.value(), folder_.path("to"));
  ASSERT_TRUE(names.ok());
  EXPECT_TRUE(names.value().empty());
}

TEST_F(FileSnapshotTest, AFolderWithSomethingInItIsLeftAlone) {
  const auto snapshot = three_files();
  const auto names = unpack_files(*snapshot, folder_.path(""));
  ASSERT_FALSE(names.ok());
  EXPECT_EQ(names.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(get(folder_.path("one")), "first");
}

TEST_F(FileSnapshotTest, NamesAndFilesThatCannotBeAreRefused) {
  const std::string path = put("file", "x");
  for (const std::string name : {"", ".", "..", "a/b"}) {
    EXPECT_EQ(snapshot_of_files(kLast, {{name, path}}).error().code, ErrorCode::invalid_argument);
  }
  EXPECT_EQ(snapshot_of_files(kLast, {{std::string(256, 'n'), path}}).error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(snapshot_of_files(kLast, {{"a", path}, {"a", path}}).error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(snapshot_of_files(kLast, {{"a", path + "-not"}}).error().code, ErrorCode::io);
  EXPECT_EQ(snapshot_of_files(kLast, {{"a", folder_.path("")}}).error().code, ErrorCode::io);
}

TEST_F(FileSnapshotTest, AFileThatBecameShorterIsAnError) {
  const std::string path = put("file", "0123456789");
  const auto made = snapshot_of_files(kLast, {{"a", path}});
  ASSERT_TRUE(made.ok());
  std::filesystem::resize_file(path, 5);
  std::string bytes(made.value()->size(), '?');
  const auto read = made.value()->read(0, bytes.data(), bytes.size());
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("shorter"), std::string::npos);
}

// The bytes come from another node: whatever they are, nothing is written outside of the folder.
TEST_F(FileSnapshotTest, BytesThatAreNoFilesAreRefusedBeforeAnythingIsWritten) {
  const auto made = snapshot_of_files(kLast, {{"ab", put("file", "content")}});
  ASSERT_TRUE(made.ok());
  const std::string good = all_of(*made.value());
  const std::string to = folder_.path("to");
  const std::size_t head = good.size() - std::string("content").size();
  const auto refused = [&](const std::string& bytes) {
    const auto names = unpack_files(PlainSnapshot(bytes), to);
    return !names.ok() && names.error().code == ErrorCode::corrupted &&
           !std::filesystem::exists(to);
  };
  for (std::size_t at = 0; at < head; ++at) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      EXPECT_TRUE(refused(bytes)) << at;
    }
  }
  for (std::size_t size = 1; size < good.size(); ++size) EXPECT_TRUE(refused(good.substr(0, size)));
  EXPECT_TRUE(refused(good + "more"));
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = "LHFS";
    bytes += std::string("\x01\0\0\0", 4);
    for (std::int64_t left = random.between(0, 60); left > 0; --left) {
      bytes.push_back(static_cast<char>(random.between(0, 255)));
    }
    EXPECT_TRUE(refused(bytes));
  }
}

TEST_F(FileSnapshotTest, AStreamOfUnknownSizeIsASnapshot) {
  std::string sent;
  int parts = 0;
  const auto made = snapshot_of_stream(
      kLast,
      [&](char* to, std::size_t bytes) -> Result<std::size_t> {
        if (++parts > 3) return std::size_t{0};
        const std::string part(bytes - static_cast<std::size_t>(parts),
                               static_cast<char>('a' + parts));
        part.copy(to, part.size());
        sent += part;
        return part.size();
      },
      folder_.path(""));
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made.value()->last(), kLast);
  EXPECT_EQ(all_of(*made.value()), sent);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path(""))) << "its file has no name";

  std::string back;
  const SnapshotStream stream = stream_of(*made.value());
  char part[1000];
  for (;;) {
    const auto got = stream(part, sizeof part);
    ASSERT_TRUE(got.ok());
    if (got.value() == 0) break;
    back.append(part, got.value());
  }
  EXPECT_EQ(back, sent);
}

TEST_F(FileSnapshotTest, AStreamThatFailsIsNoSnapshot) {
  const auto failed = [](char*, std::size_t) -> Result<std::size_t> {
    return Error{ErrorCode::corrupted, "the source is damaged"};
  };
  EXPECT_EQ(snapshot_of_stream(kLast, failed, folder_.path("")).error().message,
            "the source is damaged");
  const auto too_many = [](char*, std::size_t bytes) -> Result<std::size_t> { return bytes + 1; };
  EXPECT_EQ(snapshot_of_stream(kLast, too_many, folder_.path("")).error().code,
            ErrorCode::invalid_argument);
  const auto empty = [](char*, std::size_t) -> Result<std::size_t> { return std::size_t{0}; };
  EXPECT_EQ(snapshot_of_stream(kLast, empty, folder_.path("")).error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(snapshot_of_stream(kLast, empty, folder_.path("none")).error().code, ErrorCode::io);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path("")));
}

}  // namespace
}  // namespace leasehold::node
