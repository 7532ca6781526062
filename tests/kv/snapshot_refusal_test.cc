// Snapshots that were damaged on the way, or that no store has taken.
#include <leasehold/base/coding.h>
#include <leasehold/kv/rocksdb/rocksdb_archive.h>
#include <leasehold/tests/kv/archive_support.h>
#include <leasehold/tests/kv/same_state.h>
#include <leasehold/wire/crc32c.h>

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::kv::testing {
namespace {

class Refusal : public ::testing::Test {
 protected:
  void SetUp() override {
    taken_ = archive_of(folder_.path("from"), 61, 20);
    store_ = open_store(folder_.path("to"));
    fill(*store_, kept_, 63, 10);
  }
  Error refusal(std::string bytes) {
    const auto installed = store_->install_snapshot(BytesSnapshot(std::move(bytes), taken_.last));
    if (!installed) return installed.error();
    ADD_FAILURE() << "it was installed";
    return {ErrorCode::stopped, ""};
  }
  void expect_kept() {
    expect_same(*store_, kept_);
    EXPECT_EQ(names_in(folder_.path("to")), (std::set<std::string>{"LIVE", "LOCK", "db-1"}));
    ASSERT_TRUE(store_->install_snapshot(BytesSnapshot(taken_.bytes, taken_.last)));
    expect_same(*store_, taken_.twin);
  }

  TemporaryFolder folder_;
  Taken taken_;
  std::unique_ptr<RocksdbStore> store_;
  Twin kept_;
};

TEST_F(Refusal, OfAFlippedByteWhereverItIs) {
  Random random(66);
  // Every byte of the head and of what ends the file, and a third of the others: each takes a
  // millisecond or two.
  constexpr std::size_t kEnds = 512;
  for (std::size_t at = 0; at < taken_.bytes.size(); ++at) {
    const bool at_an_end = at < kEnds || at + kEnds > taken_.bytes.size();
    if (!at_an_end && !random.chance(1, 3)) continue;
    std::string bytes = taken_.bytes;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
    const Error error = refusal(std::move(bytes));
    ASSERT_TRUE(error.code == ErrorCode::corrupted ||
                (at == 8 && error.code == ErrorCode::unsupported_format))
        << at << ": " << error.message;
  }
  expect_kept();
}

TEST_F(Refusal, OfOneThatIsShorterOrLonger) {
  Random random(67);
  for (int i = 0; i < 60; ++i) {
    const std::size_t length =
        i < 40 ? static_cast<std::size_t>(i) : random.below(taken_.bytes.size());
    EXPECT_EQ(refusal(taken_.bytes.substr(0, length)).code, ErrorCode::corrupted) << length;
  }
  EXPECT_EQ(refusal(taken_.bytes.substr(0, taken_.bytes.size() - 1)).code, ErrorCode::corrupted);
  EXPECT_EQ(refusal(taken_.bytes + std::string(1, '\0')).code, ErrorCode::corrupted);
  expect_kept();
}

TEST_F(Refusal, OfANewerFormat) {
  std::string bytes = taken_.bytes;
  bytes[8] = 2;
  const Error error = refusal(bytes);
  EXPECT_EQ(error.code, ErrorCode::unsupported_format);
  EXPECT_EQ(error.message, "the snapshot has format 2, this build knows 1: use a newer build");
  expect_kept();
}

TEST_F(Refusal, OfAnotherClusterAndOfAnotherIndex) {
  auto foreign = node_2(folder_.path("foreign"));
  foreign.cluster_id = 78;
  const auto other = RocksdbStore::open(foreign).value();
  Twin twin;
  fill(*other, twin, 61, 20);
  const Error error = refusal(bytes_of(*other->take_snapshot().value()));
  EXPECT_EQ(error.code, ErrorCode::wrong_cluster);
  EXPECT_NE(error.message.find("cluster 000000000000004e"), std::string::npos) << error.message;
  EXPECT_EQ(store_->install_snapshot(BytesSnapshot(taken_.bytes, raft::Index(21))).error().code,
            ErrorCode::corrupted);
  expect_kept();
}

TEST_F(Refusal, OfWhatIsBehind) {
  fill(*store_, kept_, 68, 30);
  EXPECT_EQ(refusal(taken_.bytes).code, ErrorCode::invalid_argument);
  expect_same(*store_, kept_);
}

// ---- The head ----

ArchiveHead some_head() {
  ArchiveHead head;
  head.cluster_id = 77;
  head.applied = 5;
  head.revision = 4;
  head.keys = 3;
  head.files = {{"000007.sst", 70'000}, {"CURRENT", 16}, {"MANIFEST-000005", 300}};
  return head;
}

/// As encode_head() would, without its rules.
std::string forged_head(const std::vector<ArchiveFile>& files) {
  std::string out = encode_head(some_head()).substr(0, 13 + 32);
  BigWriter(out).u32(static_cast<std::uint32_t>(files.size()));
  for (const ArchiveFile& file : files) {
    BigWriter(out).sized(file.name);
    BigWriter(out).u64(file.size);
  }
  std::string length;
  BigWriter(length).u32(static_cast<std::uint32_t>(out.size() + 4));
  out.replace(9, 4, length);
  BigWriter(out).u32(wire::crc32c(out));
  return out;
}

TEST(ArchiveHead, RoundTrip) {
  const ArchiveHead head = some_head();
  EXPECT_EQ(decode_head(encode_head(head)).value(), head);
  EXPECT_EQ(forged_head(head.files), encode_head(head));
  EXPECT_EQ(archive_bytes(head), encode_head(head).size() + 70'000 + 8 + 20 + 304);
}

TEST(ArchiveHead, NamesThatNoDatabaseHasAreRefused) {
  const std::vector<ArchiveFile> good = some_head().files;
  ASSERT_TRUE(decode_head(forged_head(good)));
  for (const char* name :
       {"", ".", "..", "../000007.sst", "/etc/passwd", "a/000007.sst", "LOCK", "LOG", "LIVE",
        "000007.sst/..", ".sst", "000007.log", "MANIFEST-", "MANIFEST-1/2", "CURRENT2", "7.sst.tmp",
        "OPTIONS-000007", "000000000000000000000000000000000000007.sst"}) {
    EXPECT_FALSE(archive_carries(name)) << name;
    std::vector<ArchiveFile> files = good;
    files[0].name = name;
    EXPECT_EQ(decode_head(forged_head(files)).error().code, ErrorCode::corrupted) << name;
  }
  const std::vector<std::vector<ArchiveFile>> odd = {
      {},
      {good[0], good[1]},
      {good[1], good[2], good[2]},
      {good[1], good[0], good[2]},
      {good[0], good[0], good[1], good[2]},
      {good[1], good[2], {"MANIFEST-000006", 1}},
      {{"000007.sst", std::uint64_t{1} << 63U}, good[1], good[2]}};
  for (const auto& files : odd) {
    EXPECT_EQ(decode_head(forged_head(files)).error().code, ErrorCode::corrupted);
  }
}

TEST(ArchiveHead, RandomBytesAreRefusedOrCanonical) {
  Random random(69);
  const std::string good = encode_head(some_head());
  for (int i = 0; i < 30'000; ++i) {
    std::string bytes = good;
    const std::uint64_t flips = random.below(4);
    for (std::uint64_t flip = 0; flip < flips; ++flip) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    if (random.chance(1, 4)) bytes.resize(random.below(bytes.size() + 20));
    if (bytes.size() > 49 && random.chance(1, 2)) {  // past the checksum
      bytes.resize(bytes.size() - 4);
      BigWriter(bytes).u32(wire::crc32c(bytes));
    }
    const auto head = decode_head(bytes);
    if (head) {
      ASSERT_EQ(encode_head(head.value()), bytes);
    }
  }
}

}  // namespace
}  // namespace leasehold::kv::testing
