// What store.h promises, asked of both stores.
#include <leasehold/kv/query.h>
#include <leasehold/tests/kv/command_source.h>
#include <leasehold/tests/kv/same_state.h>
#include <leasehold/tests/kv/store_support.h>
#include <leasehold/tests/kv/store_twin.h>

#include <atomic>
#include <thread>

namespace leasehold::kv::testing {
namespace {

enum class Kind { memory, rocksdb };

class StoreContract : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() == Kind::memory) {
      store_ = std::make_unique<MemoryStore>();
    } else {
      store_ = open_store(folder_.path("kv"));
    }
    ASSERT_NE(store_, nullptr);
  }

  std::string run(const Command& command) {
    return apply(*store_, ++index_, {encoded(command)}).at(0);
  }
  /// "bytes create mod version", or "none".
  std::string show(std::string_view key) {
    const auto value = store_->get(key).value();
    if (!value) return "none";
    return std::string(value->bytes.view()) + " " + std::to_string(value->create_revision) + " " +
           std::to_string(value->mod_revision) + " " + std::to_string(value->version);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
  std::uint64_t index_ = 0;
};

TEST_P(StoreContract, RevisionsCountWhatChanges) {
  EXPECT_EQ(run(Set{"a", "1"}), "OK");
  EXPECT_EQ(run(Set{"b", "2"}), "OK");
  EXPECT_EQ(run(Set{"a", "3"}), "OK");
  EXPECT_EQ(show("a"), "3 1 3 2");
  EXPECT_EQ(run(Set{"a", "4", SetCondition::nx}), "nil");
  EXPECT_EQ(run(Del{{"nothing"}}), "0");
  EXPECT_EQ(store_->revision(), 3U);
  EXPECT_EQ(run(Del{{"a", "b", "a"}}), "2");
  EXPECT_EQ(store_->revision(), 4U);
  EXPECT_EQ(run(Set{"a", "5"}), "OK");
  EXPECT_EQ(show("a"), "5 5 5 1");
  EXPECT_EQ(show("b"), "none");
  EXPECT_EQ(store_->size(), 1U);
}

TEST_P(StoreContract, ConditionsAndOldValues) {
  EXPECT_EQ(run(Set{"k", "1", SetCondition::xx}), "nil");
  EXPECT_EQ(run(Set{"k", "1", SetCondition::nx, true}), "nil");
  EXPECT_EQ(show("k"), "1 1 1 1");
  EXPECT_EQ(run(Set{"k", "2", SetCondition::nx, true}), "\"1\"");
  EXPECT_EQ(show("k"), "1 1 1 1");
  EXPECT_EQ(run(Set{"k", "2", SetCondition::xx, true}), "\"1\"");
  EXPECT_EQ(run(Set{"k", "", SetCondition::xx}), "OK");
  EXPECT_EQ(show("k"), " 1 3 3");
}

TEST_P(StoreContract, IncrementsAreExact) {
  EXPECT_EQ(run(IncrBy{"n", 5}), "5");
  EXPECT_EQ(run(IncrBy{"n", -12}), "-7");
  EXPECT_EQ(show("n"), "-7 1 2 2");
  run(Set{"n", "9223372036854775807"});
  EXPECT_EQ(run(IncrBy{"n", 1}), "error 5: increment or decrement would overflow");
  EXPECT_EQ(run(IncrBy{"n", 0}), "9223372036854775807");
  for (const char* odd : {"", "-", "-0", "01", "+1", " 1", "1 ", "1.0", "9223372036854775808"}) {
    run(Set{"n", odd});
    EXPECT_EQ(run(IncrBy{"n", 1}), "error 4: value is not an integer or out of range") << odd;
  }
}

TEST_P(StoreContract, CommandsOfOneRunSeeEachOther) {
  const auto replies = apply(
      *store_, 1,
      {encoded(Set{"a", "1"}), encoded(IncrBy{"a", 1}),
       encoded(Set{"a", "x", SetCondition::nx, true}), encoded(Del{{"a"}}),
       encoded(Set{"a", "y", SetCondition::nx}), encoded(IncrBy{"b", 1}), encoded(Del{{"b"}})});
  EXPECT_EQ(replies, (std::vector<std::string>{"OK", "2", "\"2\"", "1", "OK", "1", "1"}));
  EXPECT_EQ(show("a"), "y 4 4 1");
  EXPECT_EQ(show("b"), "none");
  EXPECT_EQ(store_->size(), 1U);
  EXPECT_EQ(store_->applied_index(), raft::Index(7));
}

TEST_P(StoreContract, ABadCommandHasAReplyAndNoEffect) {
  std::string newer(encoded(Set{"k", "v"}).view());
  newer[0] = 9;
  const auto replies = apply(
      *store_, 1,
      {Bytes(std::string("rubbish")), Bytes(std::move(newer)), Bytes(), encoded(Set{"k", "v"})});
  EXPECT_EQ(replies.at(0), "error 2: command format 114, this build knows 1: use a newer build");
  EXPECT_EQ(replies.at(1), "error 2: command format 9, this build knows 1: use a newer build");
  EXPECT_EQ(replies.at(2), "error 1: malformed command: it is empty");
  EXPECT_EQ(replies.at(3), "OK");
  EXPECT_EQ(store_->revision(), 1U);
}

TEST_P(StoreContract, ARunWithoutCommandsMovesTheAppliedIndex) {
  EXPECT_TRUE(store_->apply({}, raft::Index(3)).empty());
  EXPECT_EQ(store_->applied_index(), raft::Index(3));
  const Bytes command = encoded(Set{"k", "v"});
  store_->apply({{{raft::Term(2), raft::Index(5)}, command.view()}}, raft::Index(9));
  EXPECT_EQ(store_->applied_index(), raft::Index(9));
}

TEST_P(StoreContract, AnIndexIsAppliedOnce) {
  run(Set{"k", "v"});
  const Bytes command = encoded(Set{"k", "v"});
  // The death happens in a process of its own: this one has threads.
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(apply(*store_, 1, {command}), "last > previous");
}

TEST_P(StoreContract, EveryByteIsAKeyByte) {
  const std::string zero("\0", 1);
  const std::string high("\xff\xff");
  run(Set{"", "empty"});
  run(Set{zero, "zero"});
  run(Set{high, "high"});
  EXPECT_EQ(store_->get("").value()->bytes.view(), "empty");
  EXPECT_EQ(store_->get(zero).value()->bytes.view(), "zero");
  EXPECT_EQ(store_->get(high).value()->bytes.view(), "high");
  EXPECT_FALSE(store_->exists(zero + zero).value());
}

TEST_P(StoreContract, TheLargestKeyAndValue) {
  const std::string key(kKeyBytesMax, 'k');
  const std::string value(kValueBytesMax, 'v');
  EXPECT_EQ(run(Set{key, value}), "OK");
  EXPECT_EQ(store_->get(key).value()->bytes.view(), value);
}

TEST_P(StoreContract, RandomCommandsAgreeWithTheTwin) {
  CommandSource source(21);
  Twin twin;
  for (int round = 0; round < 600; ++round) {
    std::vector<Bytes> commands;
    std::vector<std::string> expected;
    const std::uint64_t count = source.random().below(12) + 1;
    for (std::uint64_t i = 0; i < count; ++i) {
      commands.push_back(source.next());
      expected.push_back(twin.run(decode_command(commands.back().view()).value()));
    }
    ASSERT_EQ(apply(*store_, index_ + 1, commands), expected);
    index_ += count;
    if (round % 20 == 0) expect_same(*store_, twin);
  }
  expect_same(*store_, twin);
}

TEST_P(StoreContract, ATransactionIsOneRevisionAndSeesItsOwnWrites) {
  run(Set{"a", "1"});
  EXPECT_EQ(run(Transaction{{},
                            {IncrBy{"a", 1}, Set{"b", "x"}, Rename{false, "a", "c"},
                             MGet{{"a", "b", "c"}}, Size{}}}),
            "[2,OK,OK,[nil,\"x\",\"2\",],2,]");
  EXPECT_EQ(store_->revision(), 2U);
  EXPECT_EQ(show("b"), "x 2 2 1");
  EXPECT_EQ(show("c"), "2 2 2 1");
  EXPECT_EQ(show("a"), "none");
  EXPECT_EQ(store_->size(), 2U);
}

TEST_P(StoreContract, WatchedRevisionsAreComparedWhenApplied) {
  run(Set{"a", "1"});
  EXPECT_EQ(run(Transaction{{{"a", 1}, {"b", 0}}, {Set{"b", "2"}}}), "[OK,]");
  EXPECT_EQ(run(Transaction{{{"a", 1}, {"b", 0}}, {Set{"b", "3"}}}), "nil");
  EXPECT_EQ(run(Transaction{{{"b", 1}}, {Set{"b", "3"}}}), "nil");
  EXPECT_EQ(show("b"), "2 2 2 1");
  EXPECT_EQ(store_->revision(), 2U);
}

TEST_P(StoreContract, ATransactionPastItsLimitsDoesNothing) {
  const std::string value(kValueBytesMax, 'v');
  run(Set{"big", value});
  const Transaction reads{
      {}, {Set{"k", "1"}, Get{"big"}, Get{"big"}, Get{"big"}, Get{"big"}, Get{"big"}}};
  EXPECT_EQ(run(reads).substr(0, 8), "error 3:");
  Transaction writes{{}, {}};
  for (int i = 0; i < 6; ++i) writes.operations.push_back(SetRange{kValueBytesMax - 1, "k", "x"});
  EXPECT_EQ(run(writes).substr(0, 8), "error 3:");
  EXPECT_EQ(run(MGet{{"big", "big", "big", "big", "big"}}).substr(0, 8), "error 3:");
  EXPECT_EQ(show("k"), "none");
  EXPECT_EQ(store_->revision(), 1U);
  EXPECT_EQ(store_->get_all({"big", "big", "big", "big", "big"}, Load::whole).error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(store_->get_all({"big", "k", "big", "big", "big", "big"}, Load::revisions)
                .value()
                .at(5)
                ->mod_revision,
            1U);
}

TEST_P(StoreContract, AReadThatShowsNoValuesIsBoundedByTheirBytes) {
  const std::string value(kValueBytesMax, 'v');
  run(Set{"big", value});
  EXPECT_EQ(store_->length("big").value(), kValueBytesMax);
  EXPECT_EQ(store_->length("none").value(), std::nullopt);
  const auto some = store_->get_all({"big", "none"}, Load::revisions).value();
  EXPECT_EQ(some.at(0)->left_out, kValueBytesMax);
  EXPECT_EQ(some.at(0)->bytes.size(), 0U);
  std::vector<std::string_view> keys(16, "big");  // 256 MiB
  EXPECT_TRUE(store_->get_all(keys, Load::revisions).ok());
  keys.emplace_back("big");
  EXPECT_EQ(store_->get_all(keys, Load::revisions).error().code, ErrorCode::invalid_argument);
  // A key that is named often is looked at once.
  std::size_t loaded = 0;
  const auto reply = query(Exists{keys}, *store_, &loaded);
  EXPECT_EQ(text(encode_reply(reply.value())), std::to_string(keys.size()));
  EXPECT_EQ(loaded, kValueBytesMax);
  EXPECT_EQ(run(Exists{keys}), std::to_string(keys.size()));
  EXPECT_EQ(text(encode_reply(query(StrLen{"big"}, *store_, &loaded).value())),
            std::to_string(kValueBytesMax));
  EXPECT_EQ(loaded, kValueBytesMax);
}

TEST_P(StoreContract, ValuesDoNotGrowPastTheirLimit) {
  const std::string value(kValueBytesMax, 'v');
  run(Set{"k", value});
  EXPECT_EQ(run(Append{"k", "x"}).substr(0, 8), "error 3:");
  EXPECT_EQ(run(SetRange{kValueBytesMax, "k", "x"}).substr(0, 8), "error 3:");
  EXPECT_EQ(run(SetRange{0xffffffff, "k", ""}), std::to_string(kValueBytesMax));
  EXPECT_EQ(run(SetRange{kValueBytesMax - 1, "new", "x"}), std::to_string(kValueBytesMax));
}

// More than apply() collects in memory: it is written in parts, and every reply is still true.
TEST_P(StoreContract, ShortCommandsMayWriteLongValues) {
  std::vector<Bytes> commands;
  for (int i = 0; i < 5; ++i) {
    commands.push_back(encoded(SetRange{(8U << 20U) - 1, "key" + std::to_string(i), "x"}));
  }
  commands.push_back(encoded(Del{{"key0"}}));
  const auto replies = apply(*store_, 1, commands);
  EXPECT_EQ(replies.at(4), std::to_string(8U << 20U));
  EXPECT_EQ(store_->size(), 4U);
  EXPECT_EQ(store_->applied_index(), raft::Index(6));
  EXPECT_EQ(store_->get("key4").value()->bytes.size(), 8U << 20U);
}

TEST_P(StoreContract, KeysComeInOrderFromAnywhere) {
  for (const char* key : {"b", "a", "", "ab", "c"}) run(Set{key, "v"});
  run(Del{{"c"}});
  using Keys = std::vector<std::string>;
  EXPECT_EQ(store_->keys_after(std::nullopt, 10).value(), (Keys{"", "a", "ab", "b"}));
  EXPECT_EQ(store_->keys_after("", 2).value(), (Keys{"a", "ab"}));
  EXPECT_EQ(store_->keys_after("aa", 10).value(), (Keys{"ab", "b"}));
  EXPECT_EQ(store_->keys_after("b", 10).value(), Keys{});
}

// Each round writes "first", "second", "a", "b" and "third", and deletes "a" and "b" in one
// command. Readers check that nothing is seen half done or out of order.
TEST_P(StoreContract, ReadersSeeWholeCommandsInOrder) {
  constexpr std::uint64_t kRounds = 1000;
  constexpr int kOthers = 60;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> out_of_order{0};
  std::atomic<std::uint64_t> half_done{0};
  const auto number = [this](std::string_view key) {
    const auto value = store_->get(key).value();
    return value ? std::stoull(std::string(value->bytes.view())) : 0;
  };
  const auto reader = [&] {
    std::uint64_t newest = 0;
    std::uint64_t applied = 0;
    while (!stop.load()) {
      const std::uint64_t second = number("second");
      const std::uint64_t first = number("first");
      if (first < second || second < newest) ++out_of_order;
      newest = second;
      // Once round r has written "third", an "a" that is gone has taken "z" of round r along.
      const std::uint64_t third = number("third");
      const std::uint64_t a = number("a");
      const std::uint64_t z = number("z");
      if (a == 0 && z != 0 && z <= third) ++half_done;
      const std::uint64_t index = store_->applied_index().value();
      if (index < applied) ++out_of_order;
      applied = index;
    }
  };
  std::vector<std::string> others;
  for (int other = 0; other < kOthers; ++other) others.push_back("m" + std::to_string(other));
  std::thread one(reader);
  std::thread two(reader);
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    const std::string text = std::to_string(round);
    std::vector<Bytes> commands = {encoded(Set{"first", text}), encoded(Set{"second", text}),
                                   encoded(Set{"a", text})};
    Del del{{"a"}};
    for (const std::string& other : others) {
      commands.push_back(encoded(Set{other, text}));
      del.keys.push_back(other);
    }
    del.keys.push_back("z");
    commands.push_back(encoded(Set{"z", text}));
    commands.push_back(encoded(Set{"third", text}));
    commands.push_back(encoded(del));
    apply(*store_, index_ + 1, commands);
    index_ += commands.size();
    if (round % 3 == 0) {
      EXPECT_EQ(number("first"), round);  // visible once apply() has returned
    }
  }
  stop = true;
  one.join();
  two.join();
  EXPECT_EQ(out_of_order.load(), 0U);
  EXPECT_EQ(half_done.load(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreContract, ::testing::Values(Kind::memory, Kind::rocksdb),
                         [](const auto& kind) {
                           return kind.param == Kind::memory ? "memory" : "rocksdb";
                         });

}  // namespace
}  // namespace leasehold::kv::testing
