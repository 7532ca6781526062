// Which ends of a write-ahead file are torn, and which are damaged.
#include <leasehold/storage/rocksdb_wal.h>
#include <leasehold/tests/storage/log_support.h>
#include <leasehold/wire/crc32c.h>

#include <fstream>
#include <iterator>

namespace leasehold::storage::testing {
namespace {

constexpr std::size_t kBlock = 32768;

/// Writes records as RocksDB does.
class WalBuilder {
 public:
  void add(std::string_view record) {
    starts.push_back(bytes.size());
    bool first = true;
    do {
      const std::size_t room = kBlock - bytes.size() % kBlock;
      if (room < 7) bytes.append(room, '\0');
      const std::size_t space = kBlock - bytes.size() % kBlock - 7;
      const std::size_t length = std::min(space, record.size());
      const bool last = length == record.size();
      fragment(first ? (last ? 1 : 2) : (last ? 4 : 3), record.substr(0, length));
      record.remove_prefix(length);
      first = false;
    } while (!record.empty());
  }

  std::string bytes;
  std::vector<std::size_t> starts;

 private:
  void fragment(char type, std::string_view data) {
    const std::string checked = type + std::string(data);
    const std::uint32_t crc = wire::crc32c(checked);
    const std::uint32_t masked = ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
    for (unsigned shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<char>(masked >> shift));
    }
    bytes.push_back(static_cast<char>(data.size()));
    bytes.push_back(static_cast<char>(data.size() >> 8U));
    bytes.append(checked);
  }
};

class WalCheck : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(dir_); }

  void put(const std::string& name, const std::string& bytes) {
    std::ofstream(dir_ + "/" + name, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::string content(const std::string& name) {
    std::ifstream file(dir_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  /// The length to which the newest file was cut; or the error's name.
  std::string outcome(const std::string& bytes) {
    put("000012.log", bytes);
    const auto checked = check_wals(dir_, {12, std::nullopt});
    if (checked) return std::to_string(content("000012.log").size());
    EXPECT_EQ(content("000012.log"), bytes) << "a refused file is left alone";
    return error_code_name(checked.error().code);
  }

  TemporaryFolder folder_;
  std::string dir_ = folder_.path("log");
};

/// Three small records and one of several blocks, small ones behind it.
WalBuilder some_wal() {
  WalBuilder wal;
  for (int i = 0; i < 3; ++i) wal.add(std::string(100, static_cast<char>('a' + i)));
  wal.add(std::string(70000, 'x'));
  wal.add("short");
  wal.add(std::string(500, 'y'));
  return wal;
}

TEST_F(WalCheck, WholeFilesPass) {
  EXPECT_EQ(outcome(""), "0");
  const WalBuilder wal = some_wal();
  EXPECT_EQ(outcome(wal.bytes), std::to_string(wal.bytes.size()));
}

TEST_F(WalCheck, AFileCutAnywhereIsCutToItsLastWholeRecord) {
  const WalBuilder wal = some_wal();
  for (std::size_t length = 0; length < wal.bytes.size();
       length += (length < 250 || length > wal.bytes.size() - 550) ? 1 : 977) {
    std::size_t whole = 0;
    for (const std::size_t start : wal.starts) {
      if (start <= length) whole = start;
    }
    // Padding in front of a record belongs to neither.
    const std::string got = outcome(wal.bytes.substr(0, length));
    ASSERT_TRUE(got == std::to_string(whole) || got == std::to_string(length)) << length << got;
    ASSERT_LE(std::stoul(got), length);
  }
}

TEST_F(WalCheck, EveryFlippedBitOfSmallRecordsIsRefused) {
  WalBuilder wal;
  for (int i = 0; i < 4; ++i) wal.add(std::string(40, static_cast<char>('a' + i)));
  for (std::size_t at = 0; at < wal.bytes.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string bad = wal.bytes;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      ASSERT_EQ(outcome(bad), "corrupted") << at << " " << bit;
    }
  }
}

TEST_F(WalCheck, FlippedBitsOfLargeRecordsAreRefused) {
  const WalBuilder wal = some_wal();
  Random random(71);
  for (int round = 0; round < 1500; ++round) {
    std::string bad = wal.bytes;
    const std::size_t at = random.below(bad.size());
    bad[at] = static_cast<char>(bad[at] ^ (1 << random.below(8)));
    ASSERT_EQ(outcome(bad), "corrupted") << at;
  }
}

TEST_F(WalCheck, ARecordOfZerosAtTheEndIsTorn) {
  WalBuilder wal = some_wal();
  const std::size_t good = wal.bytes.size();
  EXPECT_EQ(outcome(wal.bytes + std::string(3, '\0')), std::to_string(good));
  EXPECT_EQ(outcome(wal.bytes + std::string(300, '\0')), std::to_string(good));
  // The first blocks of a large write are missing, the last ones are there.
  wal.add(std::string(100000, 'z'));
  std::string torn = wal.bytes;
  const std::size_t block_end = (good / kBlock + 1) * kBlock;
  std::fill(torn.begin() + static_cast<std::ptrdiff_t>(good),
            torn.begin() + static_cast<std::ptrdiff_t>(block_end), '\0');
  EXPECT_EQ(outcome(torn), std::to_string(good));
}

TEST_F(WalCheck, ARecordThatFadesIntoZerosAtTheEndIsTorn) {
  WalBuilder wal = some_wal();
  const std::size_t good = wal.bytes.size();
  for (const std::size_t size : {1000U, 20000U, 100000U}) {
    WalBuilder longer = wal;
    longer.add(std::string(size, 'z'));
    for (std::size_t from = good + 7; from + 65 < longer.bytes.size(); from += size / 9) {
      std::string torn = longer.bytes;
      std::fill(torn.begin() + static_cast<std::ptrdiff_t>(from), torn.end(), '\0');
      EXPECT_EQ(outcome(torn), std::to_string(good)) << from;
    }
  }
}

TEST_F(WalCheck, OneWholeRecordBehindTheDamageAndItIsNotTorn) {
  WalBuilder wal = some_wal();
  const std::size_t first = wal.bytes.size();
  wal.add(std::string(300, 'p'));
  wal.add(std::string(300, 'q'));
  std::string bad = wal.bytes;
  bad[first + 50] = 'P';
  const std::size_t faded = bad.size() - 100;
  std::fill(bad.begin() + static_cast<std::ptrdiff_t>(faded), bad.end(), '\0');
  EXPECT_EQ(outcome(bad), "corrupted");
  // Few zeros at the end are a record's own.
  WalBuilder own = some_wal();
  const std::size_t start = own.bytes.size();
  own.add(std::string(300, 'p') + std::string(57, '\0'));
  own.bytes[start + 50] = 'P';
  EXPECT_EQ(outcome(own.bytes), "corrupted");
}

TEST_F(WalCheck, ZerosInFrontOfRecordsAreDamage) {
  const WalBuilder wal = some_wal();
  for (std::size_t record = 0; record + 1 < wal.starts.size(); ++record) {
    std::string bad = wal.bytes;
    bad.replace(wal.starts[record], 7, 7, '\0');
    EXPECT_EQ(outcome(bad), "corrupted") << record;
  }
}

TEST_F(WalCheck, OnlyTheNewestFileMayBeTorn) {
  const WalBuilder wal = some_wal();
  put("000009.log", wal.bytes.substr(0, wal.bytes.size() - 1));
  EXPECT_EQ(outcome(wal.bytes), "corrupted");
  put("000009.log", wal.bytes);
  EXPECT_EQ(outcome(wal.bytes), std::to_string(wal.bytes.size()));
}

TEST_F(WalCheck, AfterACleanCloseNothingIsTornOrShorter) {
  const WalBuilder wal = some_wal();
  const std::size_t size = wal.bytes.size();
  put("000012.log", wal.bytes);
  EXPECT_TRUE(check_wals(dir_, {12, size}));
  EXPECT_FALSE(check_wals(dir_, {11, size}));
  for (const std::size_t length : {size - 1, wal.starts[5], wal.starts[1], std::size_t{0}}) {
    put("000012.log", wal.bytes.substr(0, length));
    const auto checked = check_wals(dir_, {12, size});
    ASSERT_FALSE(checked) << length;
    EXPECT_EQ(checked.error().code, ErrorCode::corrupted);
  }
}

TEST_F(WalCheck, TheExpectedFileOrANewerOneHasToBeThere) {
  EXPECT_TRUE(check_wals(dir_, {0, std::nullopt}));
  put("000011.log", some_wal().bytes);
  put("LOG", "no write-ahead file");
  put("x.log", "no write-ahead file either");
  EXPECT_TRUE(check_wals(dir_, {11, std::nullopt}));
  EXPECT_TRUE(check_wals(dir_, {10, std::nullopt}));
  const auto checked = check_wals(dir_, {12, std::nullopt});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::corrupted);
  EXPECT_NE(checked.error().message.find("000012.log is missing"), std::string::npos);
  EXPECT_EQ(newest_wal(dir_).value()->number, 11U);
}

}  // namespace
}  // namespace leasehold::storage::testing
