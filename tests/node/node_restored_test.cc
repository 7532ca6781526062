// What a data directory knows of its backup: the two files, damage, and a restoration that a crash
// interrupts.
#include <leasehold/base/random.h>
#include <leasehold/node/node.h>
#include <leasehold/node/node_restored.h>
#include <leasehold/node/system_clock.h>
#include <leasehold/tests/base/temporary_folder.h>
#include <leasehold/tests/node/free_ports.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::node {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kGeneration = 0x5a17c0ffee123456U;
const Restored kRestored{kGeneration, raft::Index(4711)};

class RestoredTest : public ::testing::Test {
 protected:
  std::string dir() const { return folder_.path("deep/data"); }

  TemporaryFolder folder_;
};

TEST_F(RestoredTest, ADirectoryThatWasNeverRestoredHasNone) {
  ASSERT_TRUE(load_restored(dir()));
  EXPECT_EQ(load_restored(dir()).value(), std::nullopt);
  fs::create_directories(dir());
  EXPECT_EQ(load_restored(dir()).value(), std::nullopt);
}

TEST_F(RestoredTest, ARestorationThatWasBegunIsRefusedUntilItIsFinished) {
  EXPECT_FALSE(restoration_begun(dir()).value());
  ASSERT_TRUE(begin_restoration(dir()));
  EXPECT_TRUE(restoration_begun(dir()).value());
  const auto half = load_restored(dir());
  ASSERT_FALSE(half);
  EXPECT_EQ(half.error().code, ErrorCode::corrupted);
  EXPECT_NE(half.error().message.find("run the same leasehold restore again"), std::string::npos);
  EXPECT_NE(half.error().message.find(dir()), std::string::npos);
  // A crash between the two files at the end: the restoration begins again.
  std::ofstream(dir() + "/RESTORED") << encode_restored(kRestored);
  EXPECT_FALSE(load_restored(dir()));
  ASSERT_TRUE(begin_restoration(dir()));
  ASSERT_TRUE(finish_restoration(dir(), kRestored));
  EXPECT_FALSE(restoration_begun(dir()).value());
  EXPECT_EQ(load_restored(dir()).value(), kRestored);
}

// Pinned: it stands in data directories.
TEST(RestoredFormat, Golden) {
  const std::string text = encode_restored(kRestored);
  EXPECT_EQ(text.substr(0, text.find("check")),
            "leasehold-restored 1\ngeneration 5a17c0ffee123456\nindex 4711\n");
  EXPECT_EQ(decode_restored(text).value(), kRestored);
}

Restored recovered_one() {
  Restored restored = kRestored;
  restored.recovered = Recovered{0xdeadbeefU, {raft::Term(7), raft::Index(4700)}, 1763748000};
  return restored;
}

TEST(RestoredFormat, GoldenOfARecovery) {
  const std::string text = encode_restored(recovered_one());
  EXPECT_EQ(text.substr(0, text.find("check")),
            "leasehold-restored 2\ngeneration 5a17c0ffee123456\nindex 4711\n"
            "given-up 00000000deadbeef\nend 7 4700\nrecovered 1763748000\n");
  EXPECT_EQ(decode_restored(text).value(), recovered_one());
}

TEST(RestoredFormat, AnotherFormatNamesBothNumbers) {
  const auto refused = decode_restored("leasehold-restored 3\nwhatever\n");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported_format);
  EXPECT_NE(refused.error().message.find("format 3, this build knows 1 and 2"), std::string::npos);
}

void expect_only_exact(const Restored& restored) {
  const std::string good = encode_restored(restored);
  const auto refused = [](const std::string& text) {
    const auto decoded = decode_restored(text);
    return !decoded && (decoded.error().code == ErrorCode::corrupted ||
                        decoded.error().code == ErrorCode::unsupported_format);
  };
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_TRUE(refused(good.substr(0, length))) << length;
  }
  EXPECT_TRUE(refused(good + "\n"));
  Random random(11);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string text = good;
      text[at] = static_cast<char>(text[at] ^ (1U << bit));
      EXPECT_TRUE(refused(text)) << at << " " << bit;
    }
  }
  for (int i = 0; i < 2000; ++i) {
    std::string text = good;
    for (std::uint64_t edits = random.below(4) + 1; edits > 0; --edits) {
      const std::size_t at = random.below(text.size());
      switch (random.below(3)) {
        case 0: text[at] = static_cast<char>(random.below(256)); break;
        case 1: text.erase(at, random.below(8)); break;
        default: text.insert(at, text.substr(random.below(text.size()), random.below(8))); break;
      }
      if (text.empty()) text = "x";
    }
    EXPECT_TRUE(text == good || refused(text)) << text;
  }
}

TEST(RestoredFormat, OnlyTheExactTextIsAccepted) {
  expect_only_exact(kRestored);
  expect_only_exact(recovered_one());
}

TEST_F(RestoredTest, WhatTheStateMachineHoldsHasToFit) {
  EXPECT_TRUE(check_new_log("d", std::nullopt, raft::Index(0)));
  EXPECT_TRUE(check_new_log("d", kRestored, kRestored.base));
  EXPECT_EQ(check_new_log("d", std::nullopt, raft::Index(7)).error().code,
            ErrorCode::wrong_cluster);
  EXPECT_EQ(check_new_log("d", kRestored, raft::Index(0)).error().code, ErrorCode::corrupted);
  EXPECT_EQ(check_new_log("d", kRestored, raft::Index(4712)).error().code, ErrorCode::corrupted);
}

// ---- A node on such a directory ----

/// The restored state is durable, and everything that it applies.
class CountingMachine final : public replica::StateMachine {
 public:
  explicit CountingMachine(raft::Index restored) : last_(restored.value()) {}
  raft::Index durable_index() const override { return raft::Index(last_.load()); }
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands,
                           raft::Index last) override {
    EXPECT_GT(last.value(), last_.load());
    last_ = last.value();
    return std::vector<Bytes>(commands.size());
  }
  Result<raft::Index> make_durable() override { return durable_index(); }

 private:
  std::atomic<std::uint64_t> last_;
};

class RestoredNodeTest : public RestoredTest {
 protected:
  Result<std::unique_ptr<Node>> open() {
    return Node::open(options(), machine_, clock_, observer_);
  }
  NodeOptions options() const {
    NodeOptions options;
    options.id = raft::NodeId(1);
    options.data_dir = dir();
    options.peers = {{raft::NodeId(1), address_}};
    if (waits_for_another_) options.peers.push_back({raft::NodeId(2), "127.0.0.1:1"});
    options.limits.log_tail_bytes = 100;
    return options;
  }
  static Result<replica::LogCut> cut(Node& node) {
    auto answer = std::make_shared<std::promise<Result<replica::LogCut>>>();
    auto future = answer->get_future();
    node.cut_log(
        [answer](Result<replica::LogCut> result) { answer->set_value(std::move(result)); });
    EXPECT_EQ(future.wait_for(std::chrono::seconds(60)), std::future_status::ready);
    return future.get();
  }

  std::string address_ = address_of(free_ports(1).front());
  bool waits_for_another_ = false;
  CountingMachine machine_{kRestored.base};
  SystemClock clock_;
  replica::Observer observer_;
};

TEST_F(RestoredNodeTest, TheLogGoesOnBehindWhatWasRestored) {
  ASSERT_TRUE(begin_restoration(dir()));
  EXPECT_EQ(open().error().code, ErrorCode::corrupted) << "half a restoration";
  ASSERT_TRUE(finish_restoration(dir(), kRestored));
  raft::LogId last;
  {
    const auto node = std::move(open()).value();
    for (int i = 0; i < 10; ++i) {
      const auto result =
          node->propose_and_wait(Bytes(std::string(100, 'x')), std::chrono::minutes(1));
      ASSERT_EQ(result.status, replica::ProposeStatus::committed);
      EXPECT_GT(result.id.index, kRestored.base);
      EXPECT_GT(result.id.term, kRestored.begin().term) << "its own election";
      last = result.id;
    }
    const auto done = cut(*node);
    ASSERT_TRUE(done);
    EXPECT_EQ(done.value().first_before, kRestored.base.next());
    EXPECT_GT(done.value().first, kRestored.base.next());
    EXPECT_GE(done.value().durable, last.index);
    node->stop();
    EXPECT_EQ(cut(*node).error().code, ErrorCode::stopped);
  }
  {
    const auto node = std::move(open()).value();
    const auto result = node->propose_and_wait(Bytes("again"), std::chrono::minutes(1));
    ASSERT_EQ(result.status, replica::ProposeStatus::committed);
    EXPECT_GT(result.id.index, last.index);
  }
  // Without the mark, or with that of another backup, it is of another cluster.
  fs::remove(dir() + "/RESTORED");
  EXPECT_EQ(open().error().code, ErrorCode::wrong_cluster);
  ASSERT_TRUE(begin_restoration(dir()));
  ASSERT_TRUE(finish_restoration(dir(), {kGeneration + 1, kRestored.base}));
  EXPECT_EQ(open().error().code, ErrorCode::wrong_cluster);
}

TEST_F(RestoredNodeTest, AStateMachineIsOpenedOnlyForALogThatIsOpen) {
  int opened = 0;
  const auto open_machine = [&]() -> Result<replica::StateMachine*> {
    ++opened;
    return &machine_;
  };
  ASSERT_TRUE(begin_restoration(dir()));
  ASSERT_TRUE(finish_restoration(dir(), kRestored));
  ASSERT_TRUE(Node::open(options(), open_machine, clock_, observer_));
  EXPECT_EQ(opened, 1);
  ASSERT_TRUE(begin_restoration(dir()));
  ASSERT_TRUE(finish_restoration(dir(), {kGeneration + 1, kRestored.base}));
  EXPECT_EQ(Node::open(options(), open_machine, clock_, observer_).error().code,
            ErrorCode::wrong_cluster);
  EXPECT_EQ(opened, 1) << "the log is of another cluster";
  ASSERT_TRUE(begin_restoration(dir()));
  ASSERT_TRUE(finish_restoration(dir(), kRestored));
  const auto refused = Node::open(
      options(),
      []() -> Result<replica::StateMachine*> {
        return Error{ErrorCode::unsupported_format, "of a later build"};
      },
      clock_, observer_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "of a later build");
}

TEST_F(RestoredNodeTest, ADirectoryWhoseStateIsOfAnotherIndexIsRefused) {
  ASSERT_TRUE(begin_restoration(dir()));
  ASSERT_TRUE(finish_restoration(dir(), {kGeneration, raft::Index(4712)}));
  const auto opened = open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::corrupted);
  EXPECT_NE(opened.error().message.find("restore it again"), std::string::npos);
}

TEST_F(RestoredNodeTest, BeforeItIsFormedThereIsNothingToCut) {
  waits_for_another_ = true;
  ASSERT_TRUE(begin_restoration(dir()));
  ASSERT_TRUE(finish_restoration(dir(), kRestored));
  const auto node = std::move(open()).value();
  EXPECT_EQ(cut(*node).error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace leasehold::node
