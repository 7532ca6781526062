// RocksDB's messages: what is kept of them, and that a disk without space loses only them.
#include "store_support.h"

#include <leasehold/kv/rocksdb/rocksdb_info_log.h>

#include <rocksdb/env.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace leasehold::kv::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(InfoLog, KeepsWarningsAndErrors) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("db"));
  const auto log = make_info_log(folder.path("db"), rocksdb::Env::Default());
  EXPECT_FALSE(std::filesystem::exists(folder.path("db/LOG"))) << "not before there is a line";
  rocksdb::Header(log, "Options.%s", "everything");
  rocksdb::Info(log, "flush %d", 1);
  rocksdb::Warn(log, "slow %d", 2);
  rocksdb::Error(log, "broken %s", std::string(5000, 'x').c_str());
  EXPECT_THAT(contents(folder.path("db/LOG")),
              AllOf(HasSubstr("slow 2\n"), HasSubstr("broken xxx"), Not(HasSubstr("flush")),
                    Not(HasSubstr("everything"))));
}

TEST(InfoLog, AFolderThatIsNotThereLosesTheLine) {
  const TemporaryFolder folder;
  const auto log = make_info_log(folder.path("db"), rocksdb::Env::Default());
  rocksdb::Warn(log, "early");
  std::filesystem::create_directory(folder.path("db"));
  rocksdb::Warn(log, "late");
  EXPECT_THAT(contents(folder.path("db/LOG")), AllOf(HasSubstr("late"), Not(HasSubstr("early"))));
}

TEST(InfoLog, AFullDiskLosesTheLinesAndNothingElse) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/full", folder.path("LOG"));
  const auto log = make_info_log(folder.path("."), rocksdb::Env::Default());
  for (int i = 0; i < 1000; ++i) rocksdb::Error(log, "no space %d", i);
}

TEST(InfoLog, ItsSizeIsBounded) {
  const TemporaryFolder folder;
  const auto log = make_info_log(folder.path("."), rocksdb::Env::Default());
  const std::string filler(1000, 'x');
  std::uintmax_t largest = 0;
  for (int i = 0; i < 5000; ++i) {
    rocksdb::Warn(log, "%d %s", i, filler.c_str());
    if (std::filesystem::exists(folder.path("LOG"))) {
      largest = std::max(largest, std::filesystem::file_size(folder.path("LOG")));
    }
  }
  EXPECT_LE(largest, kInfoLogBytes + 2048);
  EXPECT_LE(std::filesystem::file_size(folder.path("LOG.old")), kInfoLogBytes + 2048);
  EXPECT_THAT(contents(folder.path("LOG")), HasSubstr(" 4999 xxx"));
}

}  // namespace
}  // namespace leasehold::kv::testing
