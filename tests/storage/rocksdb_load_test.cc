// What the load at open accepts, on databases made by hand.
#include <leasehold/storage/rocksdb_load.h>
#include <leasehold/tests/storage/log_support.h>

#include <functional>

namespace leasehold::storage::testing {
namespace {

constexpr raft::GroupId kGroup{3};

/// The records of a small log: entries 1 to 6, of terms 1 1 2 2 2 4, entry 3 a membership.
std::map<std::string, std::string> good_records() {
  std::map<std::string, std::string> records;
  const std::vector<std::uint64_t> terms = {1, 1, 2, 2, 2, 4};
  std::uint64_t previous = 0;
  for (std::uint64_t i = 1; i <= terms.size(); ++i) {
    EntryHead head{raft::Term(terms[i - 1]), raft::Term(previous), raft::EntryKind::command};
    std::string payload = "payload";
    if (i == 3) {
      head.kind = raft::EntryKind::membership;
      payload = raft::encode_membership(three_voters()).view();
    }
    records[entry_key(kGroup, raft::Index(i))] = encode_entry_head(head) + payload;
    previous = terms[i - 1];
  }
  StateRecord state;
  state.hard_state.term = raft::Term(4);
  state.last = {raft::Term(4), raft::Index(6)};
  records[record_key(kGroup, RecordKind::state)] = encode_state(state);
  records[record_key(kGroup, RecordKind::base)] = encode_base({{}, three_voters()});
  records[record_key(kGroup, RecordKind::confirmed)] = encode_confirmed(three_voters());
  return records;
}

class Load : public ::testing::Test {
 protected:
  using Records = std::map<std::string, std::string>;

  Result<LoadedLog> load(const Records& records) {
    rocksdb::DB* raw = nullptr;
    const std::string dir = folder_.path("db" + std::to_string(++databases_));
    EXPECT_TRUE(rocksdb::DB::Open(log_database_options(true), dir, &raw).ok());
    const std::unique_ptr<rocksdb::DB> db(raw);
    for (const auto& record : records) {
      EXPECT_TRUE(db->Put(rocksdb::WriteOptions(), record.first, record.second).ok());
    }
    return load_log(*db, kGroup);
  }

  /// Loads the good records with one change and expects the error.
  void expect_error(const std::function<void(Records&)>& change, ErrorCode code,
                    std::string_view text) {
    Records records = good_records();
    change(records);
    const auto loaded = load(records);
    ASSERT_FALSE(loaded) << text;
    EXPECT_EQ(loaded.error().code, code);
    EXPECT_NE(loaded.error().message.find(text), std::string::npos) << loaded.error().message;
  }

  static std::string entry(std::uint64_t index) { return entry_key(kGroup, raft::Index(index)); }
  static std::string head(std::uint64_t term, std::uint64_t previous) {
    return encode_entry_head({raft::Term(term), raft::Term(previous), raft::EntryKind::command});
  }

  TemporaryFolder folder_;
  int databases_ = 0;
};

TEST_F(Load, AGoodLog) {
  Records records = good_records();
  // Another group's entries are not this group's.
  records[entry_key(raft::GroupId(2), raft::Index(9))] = head(1, 0);
  records[entry_key(raft::GroupId(4), raft::Index(9))] = head(1, 0);
  const auto loaded = load(records);
  ASSERT_TRUE(loaded) << loaded.error().message;
  const LoadedLog& log = loaded.value();
  EXPECT_EQ(log.runs, (std::vector<raft::TermRun>{{raft::Term(1), raft::Index(1)},
                                                  {raft::Term(2), raft::Index(3)},
                                                  {raft::Term(4), raft::Index(6)}}));
  ASSERT_EQ(log.memberships.size(), 1U);
  EXPECT_EQ(log.memberships[0].index, raft::Index(3));
  EXPECT_EQ(log.state.last, (raft::LogId{raft::Term(4), raft::Index(6)}));
}

TEST_F(Load, AnEmptyDatabaseIsNotFormed) {
  const auto loaded = load({});
  ASSERT_TRUE(loaded);
  EXPECT_FALSE(loaded.value().base);
  EXPECT_FALSE(loaded.value().confirmed);
}

TEST_F(Load, AMissingEntry) {
  for (std::uint64_t index = 1; index <= 5; ++index) {
    expect_error([&](Records& r) { r.erase(entry(index)); }, ErrorCode::corrupted,
                 "entry " + std::to_string(index) + " is missing");
  }
}

TEST_F(Load, AMissingEnd) {
  expect_error([](Records& r) { r.erase(entry(6)); }, ErrorCode::corrupted,
               "the log ends at entry 5 of term 2, but entry 6 of term 4 was written");
  expect_error([](Records& r) { r[entry(7)] = head(4, 4); }, ErrorCode::corrupted,
               "the log ends at entry 7");
}

TEST_F(Load, AnOldVersionOfAnOverwrittenEntry) {
  // Entries 3 to 5 as they were before term 2 overwrote them; the count and the end are right.
  expect_error(
      [](Records& r) {
        for (std::uint64_t i = 3; i <= 5; ++i) r[entry(i)] = head(1, 1);
      },
      ErrorCode::corrupted, "entry 6 does not follow from the one before");
}

TEST_F(Load, TermsThatFallOrAreZero) {
  expect_error([](Records& r) { r[entry(4)] = head(1, 2); }, ErrorCode::corrupted, "entry 4");
  expect_error([](Records& r) { r[entry(1)] = head(0, 0); }, ErrorCode::corrupted, "entry 1");
}

TEST_F(Load, MissingSmallRecords) {
  const std::string state = record_key(kGroup, RecordKind::state);
  const std::string base = record_key(kGroup, RecordKind::base);
  expect_error([&](Records& r) { r.erase(state); }, ErrorCode::corrupted,
               "the state record is missing");
  expect_error([&](Records& r) { r.erase(base); }, ErrorCode::corrupted,
               "the base record is missing");
  // Neither is there, but entries are.
  expect_error(
      [&](Records& r) {
        r.erase(state);
        r.erase(base);
      },
      ErrorCode::corrupted, "the log ends at entry 6");
}

TEST_F(Load, NewerRecords) {
  for (const std::string& key :
       {entry(2), entry(3), record_key(kGroup, RecordKind::state),
        record_key(kGroup, RecordKind::base), record_key(kGroup, RecordKind::confirmed)}) {
    expect_error([&](Records& r) { r[key][0] = 2; }, ErrorCode::unsupported_format,
                 "has format 2, this build knows 1: use a newer build");
  }
}

TEST_F(Load, ADamagedMembership) {
  expect_error([](Records& r) { r[entry(3)].pop_back(); }, ErrorCode::corrupted, "entry 3");
}

}  // namespace
}  // namespace leasehold::storage::testing
