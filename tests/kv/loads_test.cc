// How much one command may load: it is named by few bytes, and every replica pays for it.
#include <leasehold/kv/evaluate.h>
#include <leasehold/kv/load_limit.h>
#include <leasehold/kv/sessions.h>
#include <leasehold/tests/kv/command_text.h>
#include <leasehold/tests/kv/store_support.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::kv::testing {
namespace {

/// Has one value under every key, and counts how often it is read.
class CountsLoads final : public Backend {
 public:
  Result<std::optional<Value>> load(std::string_view) override {
    ++loads;
    Value value;
    value.bytes = Bytes(std::string(bytes, 'v'));
    value.mod_revision = 1;
    return std::optional<Value>(std::move(value));
  }
  void put(std::string_view, Value) override {}
  void erase(std::string_view) override { ++erased; }
  Result<grant::FencingToken> fence(std::string_view) override { return grant::FencingToken(0); }
  void put_fence(std::string_view, grant::FencingToken, bool) override {}
  std::size_t fence_count() override { return 0; }
  grant::LeaseTable& leases() override { return leases_; }
  Users& users() override { return users_; }
  void tell(const Revision&) override {}

  std::size_t bytes = 1;
  int loads = 0;
  int erased = 0;

 private:
  grant::LeaseTable leases_;
  Users users_;
};

// One command of 330 KB that names a key of 16 MiB 65,535 times kept every replica busy for
// minutes.
TEST(Loads, AKeyThatOneCommandNamesOftenIsReadOnce) {
  CountsLoads backend;
  Sessions sessions;
  Counters counters;
  const auto loads_of = [&](const Command& command) {
    backend.loads = 0;
    EXPECT_TRUE(evaluate(first_of(encoded(command)), backend, sessions, counters).ok());
    return backend.loads;
  };
  const std::vector<std::string_view> often(1000, "k");
  EXPECT_EQ(loads_of(Exists{often}), 1);
  DelEqual del;
  del.keys = often;
  del.value = "other";
  EXPECT_EQ(loads_of(del), 1);
  TransactionBuilder builder;
  ASSERT_TRUE(builder.watch({"k", 1}));
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(builder.add(StrLen{"k"}));
  ASSERT_TRUE(builder.add(Exists{often}));
  backend.loads = 0;
  EXPECT_TRUE(evaluate(first_of(builder.finish()), backend, sessions, counters).ok());
  EXPECT_EQ(backend.loads, 1);
  backend.bytes = (std::size_t{16} << 20U) + 1;
  EXPECT_EQ(loads_of(Exists{{"a", "b", "c", "a", "b", "c"}}), 3);
  EXPECT_EQ(loads_of(Exists{{"a", "b", "c", "d", "d"}}), 4) << "the newest stays";
}

class LimitedLoads : public ::testing::Test {
 protected:
  std::string run(const Command& command, std::uint64_t bytes) {
    const Bytes carried = encoded(command);
    const Bytes limited = encoded(LoadAtMost{bytes, carried.view()});
    const auto reply = evaluate(first_of(limited), backend_, sessions_, counters_);
    EXPECT_TRUE(reply.ok());
    return text(reply.value());
  }

  CountsLoads backend_;
  Sessions sessions_;
  Counters counters_;
};

// 65,535 names of five keys of 16 MiB are a megabyte of a command, and were 1 TB to read.
TEST_F(LimitedLoads, ValuesBeyondTheLimitAreRefusedBeforeAnythingIsDone) {
  backend_.bytes = 10;
  EXPECT_EQ(run(Del{{"a", "b", "c"}}, 30), "3");
  EXPECT_EQ(backend_.erased, 3);
  EXPECT_EQ(counters_.revision, 1U);
  EXPECT_EQ(
      run(Del{{"a", "b", "c", "d"}}, 39),
      "error 3: nothing was done: the values of the keys that the command names have more than "
      "39 bytes together; name fewer of them at once");
  EXPECT_EQ(backend_.erased, 3);
  EXPECT_EQ(counters_.revision, 1U);
  EXPECT_EQ(run(Exists{{"a", "b"}}, 19).substr(0, 6), "error ");
  EXPECT_EQ(run(Exists{{"a", "b"}}, 20), "2");
}

TEST_F(LimitedLoads, AKeyCountsOnceAndIsReadOnce) {
  backend_.bytes = 10;
  backend_.loads = 0;
  EXPECT_EQ(run(Exists{{"a", "b", "a", "b", "a"}}, 20), "5");
  EXPECT_EQ(run(Transaction{{{"a", 1}}, {StrLen{"a"}, Get{"a"}, Exists{{"a"}}}}, 10),
            "[10,\"vvvvvvvvvv\",1,]");
  EXPECT_EQ(backend_.loads, 3);
  // Without the limit these would be read again and again: they are too large to keep.
  backend_.bytes = std::size_t{16} << 20U;
  backend_.loads = 0;
  const std::vector<std::string_view> five = {"a", "b", "c", "d", "e"};
  Transaction often;
  for (int i = 0; i < 3; ++i) often.operations.emplace_back(Exists{five});
  EXPECT_EQ(run(often, kLoadedBytesMax), "[5,5,5,]");
  EXPECT_EQ(backend_.loads, 5);
}

TEST_F(LimitedLoads, WhatFailsInATransactionUndoesItsOtherPart) {
  backend_.bytes = 10;
  EXPECT_EQ(run(Transaction{{}, {Del{{"a"}}, Exists{{"b"}}}}, 19).substr(0, 6), "error ");
  EXPECT_EQ(backend_.erased, 0);
}

TEST(LoadLimit, ACommandOfManyKeysGetsIt) {
  const auto is_limited = [](const Command& command, raft::FeatureLevel level) {
    const Bytes bytes = encoded(command);
    const auto limited = limit_loads(bytes, level);
    EXPECT_TRUE(limited);
    if (limited.value().view() == bytes.view()) return false;
    EXPECT_EQ(limited.value().view(), encoded(LoadAtMost{kLoadedBytesMax, bytes.view()}).view());
    return true;
  };
  const auto level = raft::kSettingsLevel;
  const std::vector<std::string_view> few(kFewKeys, "k");
  const std::vector<std::string_view> many(kFewKeys + 1, "k");
  const MSet pairs{MSetCondition::none, {many.size(), {"k", "v"}}};
  EXPECT_FALSE(is_limited(Set{"k", "v"}, level));
  EXPECT_FALSE(is_limited(Del{few}, level));
  for (const Command& command :
       std::vector<Command>{Del{many}, DelEqual{"v", many}, pairs, Exists{many}, MGet{many}}) {
    EXPECT_TRUE(is_limited(command, level));
    EXPECT_FALSE(is_limited(command, raft::kOldestLevel)) << "others may not know it";
  }
  Transaction parts{{{"k", 1}}, {Del{few}}};
  EXPECT_TRUE(is_limited(parts, level));
  parts.watched.clear();
  EXPECT_FALSE(is_limited(parts, level));
  parts.operations.emplace_back(StrLen{"k"});
  EXPECT_TRUE(is_limited(parts, level));
  const Bytes carried = encoded(Del{many});
  const Bytes once = encoded(Once{replica::SessionId(1), 1, 1, carried.view()});
  EXPECT_TRUE(is_limited(Once{replica::SessionId(1), 1, 1, carried.view()}, level));
  EXPECT_TRUE(is_limited(ActAs{"ann", false, once.view()}, level));
}

TEST(LoadLimit, ItCarriesACommandOfClientsAndNoOther) {
  const Bytes set = encoded(Set{"k", "v"});
  const Bytes acting = encoded(ActAs{"ann", false, set.view()});
  const Bytes limited = encoded(LoadAtMost{1, acting.view()});
  EXPECT_FALSE(encode_command(LoadAtMost{1, limited.view()})) << "no deeper";
  const Bytes user = encoded(SetUser{"ann", 0, "on"});
  EXPECT_FALSE(encode_command(LoadAtMost{1, user.view()}));
  EXPECT_FALSE(encode_command(ActAs{"ann", false, limited.view()}));
  EXPECT_FALSE(encode_command(LoadAtMost{1, ""}));
}

}  // namespace
}  // namespace leasehold::kv::testing
