// The manifest of a backup: what it looks like, and that nothing else is taken for one.
#include <leasehold/base/random.h>
#include <leasehold/server/front/backup_manifest.h>
#include <leasehold/wire/crc32c.h>

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace leasehold::server {
namespace {

BackupManifest example() {
  BackupManifest manifest;
  manifest.cluster = "the shop";
  manifest.cluster_id = 0xdeadbeef;
  manifest.generation = 0x5a17c0ffee123456U;
  manifest.node = raft::NodeId(2);
  manifest.term = raft::Term(7);
  manifest.index = raft::Index(4711);
  manifest.revision = 4700;
  manifest.keys = 1200;
  manifest.taken_s = 1763748000;
  manifest.archive_bytes = 123456;
  return manifest;
}

constexpr const char* kLines =
    "leasehold-backup 1\n"
    "cluster the%20shop\n"
    "cluster-id 00000000deadbeef\n"
    "generation 5a17c0ffee123456\n"
    "node 2\n"
    "term 7\n"
    "index 4711\n"
    "revision 4700\n"
    "keys 1200\n"
    "taken 1763748000\n"
    "bytes 123456\n";

/// `lines` with the check that they need.
std::string sealed(std::string lines) {
  char check[32];
  std::snprintf(check, sizeof(check), "check %08x\n", wire::crc32c(lines));
  lines += check;
  lines.resize(kManifestBytes, '\n');
  return lines;
}

std::string with(const std::string& line, const std::string& other) {
  std::string lines = kLines;
  const std::size_t at = lines.find(line);
  EXPECT_NE(at, std::string::npos) << line;
  return lines.replace(at, line.size(), other);
}

ErrorCode refusal(const std::string& bytes) {
  const auto decoded = decode_manifest(bytes);
  if (!decoded) return decoded.error().code;
  ADD_FAILURE() << "accepted:\n" << bytes.substr(0, bytes.find("\n\n"));
  return ErrorCode::stopped;
}

// Pinned: backups contain it.
TEST(BackupManifest, Golden) {
  EXPECT_EQ(encode_manifest(example()), sealed(kLines));
  EXPECT_EQ(decode_manifest(sealed(kLines)).value(), example());
}

TEST(BackupManifest, GoldenOfARecovery) {
  BackupManifest manifest = example();
  manifest.recovered_end = raft::LogId{raft::Term(7), raft::Index(4700)};
  const std::string lines =
      with("leasehold-backup 1\n", "leasehold-backup 2\n") + "recovered 7 4700\n";
  EXPECT_EQ(encode_manifest(manifest), sealed(lines));
  EXPECT_EQ(decode_manifest(sealed(lines)).value(), manifest);
  for (const char* other : {"", "recovered 7\n", "recovered 7 \n", "recovered 07 4700\n",
                            "recovered 7  4700\n", "recovered 7 4711\n"}) {
    EXPECT_EQ(refusal(sealed(with("leasehold-backup 1\n", "leasehold-backup 2\n") + other)),
              ErrorCode::corrupted)
        << other;
  }
  EXPECT_EQ(refusal(sealed(std::string(kLines) + "recovered 7 4700\n")), ErrorCode::corrupted);
}

TEST(BackupManifest, EveryNameOfAClusterComesBack) {
  BackupManifest manifest = example();
  for (int byte = 0; byte < 256; ++byte) {
    manifest.cluster = std::string(1, static_cast<char>(byte));
    EXPECT_EQ(decode_manifest(encode_manifest(manifest)).value(), manifest) << byte;
  }
  manifest.cluster = std::string(kClusterNameBytesMax, '\n');
  EXPECT_EQ(decode_manifest(encode_manifest(manifest)).value(), manifest);
  manifest.revision = manifest.keys = manifest.archive_bytes = ~std::uint64_t{0};
  manifest.index = raft::Index(~std::uint64_t{0});
  EXPECT_EQ(decode_manifest(encode_manifest(manifest)).value(), manifest);
}

TEST(BackupManifest, AnotherFormatNamesBothNumbers) {
  const auto refused = decode_manifest(sealed("leasehold-backup 3\nnobody knows\n"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported_format);
  EXPECT_NE(refused.error().message.find("format 3, this build knows 1 and 2"), std::string::npos);
  // One that only looks like another format.
  std::string damaged = sealed(kLines);
  damaged[std::string_view("leasehold-backup ").size()] = '4';
  EXPECT_EQ(refusal(damaged), ErrorCode::corrupted);
}

TEST(BackupManifest, AFileThatIsNotABackupIsRefusedAsSuch) {
  for (const char* bytes : {"", "x", "LHSNAP\r\n\1", "leasehold-log 3\n"}) {
    const auto refused = decode_manifest(bytes);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("leasehold backup wrote"), std::string::npos);
  }
}

TEST(BackupManifest, EveryFlippedBitAndEveryCutIsDamage) {
  const std::string good = sealed(kLines);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ (1U << (at % 8)));
    EXPECT_EQ(refusal(bytes), ErrorCode::corrupted) << at;
  }
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_EQ(refusal(good.substr(0, length)), ErrorCode::corrupted) << length;
  }
}

// With a right check: only the canonical spelling of each value is accepted, and only possible
// values.
TEST(BackupManifest, MalformedLinesAreRefused) {
  const std::pair<const char*, const char*> changes[] = {
      {"cluster the%20shop\n", "cluster \n"},
      {"cluster the%20shop\n", "cluster the shop\n"},
      {"cluster the%20shop\n", "cluster the%2\n"},
      {"cluster the%20shop\n", "cluster th%65\n"},
      {"cluster the%20shop\n", ""},
      {"cluster-id 00000000deadbeef\n", "cluster-id deadbeef\n"},
      {"cluster-id 00000000deadbeef\n", "cluster-id 0000000000000000\n"},
      {"cluster-id 00000000deadbeef\n", "cluster-id 00000000DEADBEEF\n"},
      {"generation 5a17c0ffee123456\n", "generation 0000000000000000\n"},
      {"node 2\n", "node +2\n"},
      {"node 2\n", "node 02\n"},
      {"node 2\n", "node two\n"},
      {"term 7\n", "term -7\n"},
      {"index 4711\n", "index 0\n"},
      {"index 4711\n", "index 99999999999999999999\n"},
      {"bytes 123456\n", "bytes 123456 \n"},
      {"bytes 123456\n", "bytes 123456\nmore 1\n"},
      {"bytes 123456\n", ""},
  };
  for (const auto& [line, other] : changes) {
    EXPECT_EQ(refusal(sealed(with(line, other))), ErrorCode::corrupted) << other;
  }
  EXPECT_EQ(refusal(sealed(with("leasehold-backup 1\n", "leasehold-backup x\n"))),
            ErrorCode::corrupted);
  std::string long_name = "cluster " + std::string(kClusterNameBytesMax + 1, 'n') + "\n";
  EXPECT_EQ(refusal(sealed(with("cluster the%20shop\n", long_name))), ErrorCode::corrupted);
}

TEST(BackupManifest, RandomEditsAreRefusedOrComeBackAsTheyWere) {
  Random random(17);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string lines = kLines;
    for (std::uint64_t edits = random.below(4) + 1; edits > 0 && !lines.empty(); --edits) {
      const std::size_t at = random.below(lines.size());
      const std::size_t from = random.below(lines.size());
      switch (random.below(4)) {
        case 0: lines[at] = static_cast<char>(random.below(256)); break;
        case 1: lines[at] = static_cast<char>('0' + random.below(10)); break;
        case 2: lines.erase(at, random.below(12)); break;
        default: lines.insert(at, lines.substr(from, random.below(40))); break;
      }
    }
    const std::string bytes = sealed(lines);
    const auto decoded = decode_manifest(bytes);
    if (!decoded) continue;
    ++accepted;
    EXPECT_EQ(encode_manifest(decoded.value()), bytes);
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace leasehold::server
