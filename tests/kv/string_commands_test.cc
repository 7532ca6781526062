// Fractions, copies, bits and common parts of values, in both stores.
#include <leasehold/kv/decimal.h>
#include <leasehold/kv/query.h>
#include <leasehold/tests/kv/store_support.h>

namespace leasehold::kv::testing {
namespace {

enum class StoreKind { memory, rocksdb };

class StringCommands : public ::testing::TestWithParam<StoreKind> {
 protected:
  void SetUp() override {
    if (GetParam() == StoreKind::memory) {
      store_ = std::make_unique<MemoryStore>();
    } else {
      store_ = open_store(folder_.path("kv"));
    }
    ASSERT_NE(store_, nullptr);
  }
  std::string run(const Command& command) {
    return apply(*store_, ++index_, {encoded(command)}).at(0);
  }
  std::string value_of(std::string_view key) {
    const auto value = store_->get(key).value();
    return value ? std::string(value->bytes.view()) : "none";
  }
  /// How long a key lives in milliseconds; 0: forever.
  std::int64_t time_of(std::string_view key) {
    const auto id = store_->get(key).value()->lease;
    if (id == grant::LeaseId(0)) return 0;
    return store_->leases_after(grant::LeaseId(id.value() - 1), 1).value().at(0).ttl /
           std::chrono::milliseconds(1);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
  std::uint64_t index_ = 0;
};

TEST_P(StringCommands, FractionsAreAdded) {
  EXPECT_EQ(run(IncrByFloat{"n", "10.5"}), "\"10.5\"");
  EXPECT_EQ(run(IncrByFloat{"n", "0.1"}), "\"10.6\"");
  EXPECT_EQ(run(IncrByFloat{"n", "-1e1"}), "\"0.6\"");
  EXPECT_EQ(value_of("n"), "0.6");
  EXPECT_EQ(store_->revision(), 3U);
  run(Set{"n", "1 "});
  EXPECT_EQ(run(IncrByFloat{"n", "1"}), "error 20: value is not a valid float");
  run(Set{"n", std::string(kDecimalDigitsMax, '9')});
  EXPECT_EQ(run(IncrByFloat{"n", "1"}), "error 5: increment would produce NaN or Infinity");
  EXPECT_EQ(store_->revision(), 5U);
  Set timed{"t", "1"};
  timed.ttl = std::chrono::seconds(5);
  run(timed);
  EXPECT_EQ(run(IncrByFloat{"t", "1"}), "\"2\"");
  EXPECT_EQ(time_of("t"), 5000);
}

// A short command could keep every replica busy otherwise.
TEST_P(StringCommands, ATransactionAddsSoManyDigits) {
  run(Set{"n", std::string(4900, '7')});
  Transaction many;
  for (int i = 0; i < 3500; ++i) many.operations.push_back(IncrByFloat{"n", "1"});
  const std::string reply = run(many);
  EXPECT_EQ(reply.substr(0, 4), "[\"77");
  EXPECT_NE(reply.find("error 3: nothing was done: it would take more than"), std::string::npos);
  // What was added before stays: 2^24 steps, of which each takes 4,901.
  EXPECT_EQ(value_of("n").substr(4895), std::to_string(77777 + (1U << 24U) / 4901));
}

TEST_P(StringCommands, ACopyHasTheValueAndWhatIsLeftOfTheTime) {
  EXPECT_EQ(run(Copy{false, "a", "b"}), "0");
  run(Set{"a", "1"});
  EXPECT_EQ(run(Copy{false, "a", "b"}), "1");
  EXPECT_EQ(value_of("b"), "1");
  EXPECT_EQ(time_of("b"), 0);
  Set timed{"a", "2"};
  timed.ttl = std::chrono::seconds(5);
  run(timed);
  EXPECT_EQ(run(Copy{false, "a", "b"}), "0");
  EXPECT_EQ(value_of("b"), "1");
  // Nobody has seen how much is left: all of it.
  EXPECT_EQ(run(Copy{true, "a", "b"}), "1");
  EXPECT_EQ(value_of("b"), "2");
  EXPECT_EQ(time_of("b"), 5000);
  const auto stamp =
      store_->leases_after(grant::LeaseId(store_->get("a").value()->lease.value() - 1), 1)
          .value()
          .at(0)
          .stamp;
  EXPECT_EQ(run(Copy{false, "a", "c", {stamp, std::chrono::seconds(3)}}), "1");
  EXPECT_EQ(time_of("c"), 3000);
  EXPECT_EQ(run(Copy{true, "a", "c", {stamp + 100, std::chrono::seconds(1)}}), "1");
  EXPECT_EQ(time_of("c"), 5000);
  // Its time is over, and it is still here.
  EXPECT_EQ(run(Copy{true, "a", "c", {stamp, KeyTime(0)}}), "1");
  EXPECT_EQ(time_of("c"), 1);
  EXPECT_EQ(time_of("a"), 5000);
  // Over a key with a time, one that has none.
  run(Set{"plain", "3"});
  EXPECT_EQ(run(Copy{true, "plain", "c"}), "1");
  EXPECT_EQ(time_of("c"), 0);
}

TEST_P(StringCommands, ACopyIsAttachedToTheLeaseOfAClient) {
  run(GrantLease{grant::LeaseId(7), std::chrono::seconds(10), "", "me"});
  Set leased{"a", "1"};
  leased.lease = grant::LeaseId(7);
  run(leased);
  EXPECT_EQ(run(Copy{false, "a", "b"}), "1");
  EXPECT_EQ(store_->get("b").value()->lease, grant::LeaseId(7));
  EXPECT_EQ(run(RevokeLease{grant::LeaseId(7)}), "OK");
  EXPECT_EQ(value_of("a"), "none");
  EXPECT_EQ(value_of("b"), "none");
  EXPECT_EQ(store_->size(), 0U);
}

TEST_P(StringCommands, NobodyCopiesAKeyOfAnothersLease) {
  const Bytes grant = encoded(GrantLease{grant::LeaseId(7), std::chrono::seconds(10), "", "me"});
  run(SetUser{"ann", 0, "on"});
  run(ActAs{"ann", false, grant.view()});
  Set leased{"a", "1"};
  leased.lease = grant::LeaseId(7);
  run(leased);
  const Bytes copy = encoded(Copy{false, "a", "b"});
  EXPECT_EQ(run(ActAs{"bob", false, copy.view()}).substr(0, 9), "error 17:");
  EXPECT_EQ(value_of("b"), "none");
  EXPECT_EQ(run(ActAs{"ann", false, copy.view()}), "1");
}

TEST_P(StringCommands, BitsOfAValue) {
  EXPECT_EQ(run(SetBit{7, true, "k"}), "0");
  EXPECT_EQ(value_of("k"), "\x01");
  EXPECT_EQ(run(SetBit{7, true, "k"}), "1");
  EXPECT_EQ(store_->revision(), 1U) << "it was right";
  EXPECT_EQ(run(SetBit{8, false, "k"}), "0");
  EXPECT_EQ(value_of("k"), std::string("\x01\0", 2)) << "it has grown";
  EXPECT_EQ(run(SetBit{7, false, "k"}), "1");
  EXPECT_EQ(run(GetBit{7, "k"}), "0");
  EXPECT_EQ(run(SetBit{kBitsMax - 1, true, "big"}), "0");
  EXPECT_EQ(store_->length("big").value(), kValueBytesMax);
  EXPECT_EQ(run(GetBit{kBitsMax - 1, "big"}), "1");
  EXPECT_EQ(run(GetBit{0xffffffff, "big"}), "0");
  EXPECT_EQ(run(BitCount{0, -1, false, "big"}), "1");
  EXPECT_FALSE(encode_command(SetBit{kBitsMax, true, "k"}));
}

TEST_P(StringCommands, BitsAreCountedInAPart) {
  run(Set{"k", "foobar"});
  const auto count = [&](std::int64_t start, std::int64_t end, bool bits) {
    const std::string in_log = run(BitCount{start, end, bits, "k"});
    EXPECT_EQ(text(encode_reply(query(BitCount{start, end, bits, "k"}, *store_).value())), in_log);
    return in_log;
  };
  EXPECT_EQ(count(0, -1, false), "26");
  EXPECT_EQ(count(0, 0, false), "4");
  EXPECT_EQ(count(1, 1, false), "6");
  EXPECT_EQ(count(5, 30, true), "17");
  EXPECT_EQ(count(-1, -1, true), "0");
  EXPECT_EQ(count(3, 1, false), "0");
  EXPECT_EQ(count(100, 200, true), "0");
  EXPECT_EQ(run(BitCount{0, -1, false, "none"}), "0");
}

TEST_P(StringCommands, ATransactionCountsSoManyBits) {
  run(SetBit{kBitsMax - 1, true, "big"});
  Transaction many;
  for (int i = 0; i < 70; ++i) many.operations.push_back(BitCount{0, -1, false, "big"});
  const std::string reply = run(many);
  EXPECT_EQ(reply.substr(0, 5), "[1,1,");
  EXPECT_NE(reply.find("error 3: nothing was done: it would take more than"), std::string::npos);
}

TEST_P(StringCommands, WhatIsCommonToTwoValues) {
  run(Set{"a", "ohmytext"});
  run(Set{"b", "mynewtext"});
  const auto ask = [&](LcsWanted wanted, bool lengths, std::uint64_t least) {
    const Lcs lcs{wanted, lengths, least, "a", "b"};
    const std::string in_log = run(Transaction{{}, {lcs}});
    const std::string read = text(encode_reply(query(lcs, *store_).value()));
    EXPECT_EQ(in_log, "[" + read + ",]");
    return read;
  };
  EXPECT_EQ(ask(LcsWanted::text, false, 0), "\"mytext\"");
  EXPECT_EQ(ask(LcsWanted::length, false, 0), "6");
  EXPECT_EQ(ask(LcsWanted::runs, false, 0), "[[[[4,7,],[5,8,],],[[2,3,],[0,1,],],],6,]");
  EXPECT_EQ(ask(LcsWanted::runs, true, 4), "[[[[4,7,],[5,8,],4,],],6,]");
  EXPECT_EQ(run(Lcs{LcsWanted::text, false, 0, "a", "none"}), "\"\"");
  EXPECT_EQ(run(Lcs{LcsWanted::runs, false, 0, "none", "none"}), "[[],0,]");
}

TEST_P(StringCommands, TwoLongValuesAreNotCompared) {
  run(Set{"a", std::string(4096, 'a')});
  run(Set{"b", std::string(4096, 'a')});
  run(Set{"c", std::string(4095, 'a')});
  const Lcs too_long{LcsWanted::length, false, 0, "a", "b"};
  const Lcs fits{LcsWanted::length, false, 0, "a", "c"};
  EXPECT_EQ(run(too_long).substr(0, 8), "error 3:");
  EXPECT_EQ(text(encode_reply(query(too_long, *store_).value())).substr(0, 8), "error 3:");
  EXPECT_EQ(run(fits), "4095");
  // All comparisons of a transaction count together.
  const std::string twice = run(Transaction{{}, {fits, fits}});
  EXPECT_EQ(twice.substr(0, 6), "[4095,");
  EXPECT_NE(twice.find("error 3:"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Both, StringCommands,
                         ::testing::Values(StoreKind::memory, StoreKind::rocksdb),
                         [](const auto& kind) {
                           return kind.param == StoreKind::memory ? "memory" : "rocksdb";
                         });

}  // namespace
}  // namespace leasehold::kv::testing
