// What a state machine holds of an arriving snapshot, and what of it is copied.
#include <leasehold/replica/snapshot_filler.h>

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::replica {
namespace {

/// 32 bytes that differ where the tests' bytes do.
std::string short_digest(std::string_view bytes) {
  std::string digest(bytes.substr(0, 32));
  digest.resize(32, '.');
  return digest;
}

class TextArriving final : public ArrivingSnapshot {
 public:
  explicit TextArriving(std::uint64_t size) : size_(size) {}
  raft::Index last() const override { return raft::Index(5); }
  std::uint64_t size() const override { return size_; }
  std::uint64_t received() const override { return text.size(); }
  Result<void> append(std::string_view data) override {
    if (full) return Error{ErrorCode::overloaded, "no space"};
    text += data;
    return {};
  }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    text.copy(to, bytes, static_cast<std::size_t>(offset));
    return {};
  }
  std::string text;
  bool full = false;

 private:
  std::uint64_t size_;
};

struct Listed {
  HeldBlocks::Block block;
  std::optional<std::string> here;  ///< none: it cannot be read
};

class ListedBlocks final : public HeldBlocks {
 public:
  explicit ListedBlocks(std::vector<Listed> list) : list_(std::move(list)) {}
  std::optional<Block> next(std::uint64_t from) override {
    for (const Listed& one : list_) {
      if (one.block.offset + one.block.size > from) return one.block;
    }
    return std::nullopt;
  }
  Result<void> read(const Block& block, char* to) override {
    for (const Listed& one : list_) {
      if (one.block.offset == block.offset && one.here) {
        one.here->copy(to, block.size);
        return {};
      }
    }
    return Error{ErrorCode::io, "gone"};
  }

 private:
  std::vector<Listed> list_;
};

class AnsweringMachine final : public StateMachine {
 public:
  raft::Index durable_index() const override { return raft::Index(0); }
  std::vector<Bytes> apply(const std::vector<Command>& commands, raft::Index) override {
    return std::vector<Bytes>(commands.size());
  }
  HeldAnswer held_blocks(const Snapshot& arriving, std::uint64_t arrived) override {
    EXPECT_EQ(arriving.size(), 20U);
    asked.push_back(arrived);
    if (answers.empty()) return {};
    HeldAnswer answer = std::move(answers.front());
    answers.pop_front();
    return answer;
  }
  std::vector<std::uint64_t> asked;
  std::deque<HeldAnswer> answers;
};

/// A snapshot of "0123456789abcdefghij".
class Filling : public ::testing::Test {
 protected:
  static Listed listed(std::uint64_t offset, const std::string& truth,
                       std::optional<std::string> here) {
    return {{offset, truth.size(), short_digest(truth)}, std::move(here)};
  }
  void holds(std::vector<Listed> list) {
    machine.answers.push_back({0, std::make_unique<ListedBlocks>(std::move(list))});
  }
  std::uint64_t copy() {
    const Result<std::uint64_t> copied = filler.copy(arriving);
    EXPECT_TRUE(copied.ok());
    return copied.ok() ? copied.value() : 0;
  }

  AnsweringMachine machine;
  SnapshotFiller filler{machine, short_digest};
  TextArriving arriving{20};
};

TEST_F(Filling, WhatIsHereIsCopiedWhereItComesNext) {
  holds({listed(4, "4567", "4567"), listed(8, "89ab", "89ab"), listed(16, "ghij", "ghij")});
  EXPECT_FALSE(filler.wants(arriving)) << "nothing has arrived";
  EXPECT_TRUE(machine.asked.empty());
  arriving.text = "012";
  EXPECT_FALSE(filler.wants(arriving));
  arriving.text = "01234";
  ASSERT_TRUE(filler.wants(arriving));
  EXPECT_EQ(copy(), 3U) << "the rest of a block of which the leader has sent the front";
  ASSERT_TRUE(filler.wants(arriving));
  EXPECT_EQ(copy(), 4U);
  EXPECT_EQ(arriving.text, "0123456789ab");
  EXPECT_FALSE(filler.wants(arriving));
  arriving.text += "cdef";
  ASSERT_TRUE(filler.wants(arriving));
  EXPECT_EQ(copy(), 4U);
  EXPECT_EQ(arriving.text, "0123456789abcdefghij");
  EXPECT_FALSE(filler.wants(arriving));
  EXPECT_EQ(machine.asked, (std::vector<std::uint64_t>{3}));
}

TEST_F(Filling, OtherBytesAreNotCopied) {
  holds({listed(4, "4567", "4x67"), listed(8, "89ab", std::nullopt), listed(12, "cdef", "cdef")});
  arriving.text = "0123";
  ASSERT_TRUE(filler.wants(arriving));
  EXPECT_EQ(copy(), 0U);
  EXPECT_EQ(arriving.text, "0123");
  EXPECT_FALSE(filler.wants(arriving)) << "the leader has to send it";
  arriving.text += "45678";
  ASSERT_TRUE(filler.wants(arriving));
  EXPECT_EQ(copy(), 0U) << "it is gone";
  EXPECT_FALSE(filler.wants(arriving));
  arriving.text += "9ab";
  ASSERT_TRUE(filler.wants(arriving));
  EXPECT_EQ(copy(), 4U);
  EXPECT_EQ(arriving.text, "0123456789abcdef");
}

TEST_F(Filling, TheMachineIsAskedAgainWhenItSaysSo) {
  machine.answers.push_back({6, nullptr});
  machine.answers.push_back({9, nullptr});
  holds({listed(8, "89ab", "89ab")});
  arriving.text = "01";
  EXPECT_FALSE(filler.wants(arriving));
  arriving.text = "01234";
  EXPECT_FALSE(filler.wants(arriving));
  arriving.text = "0123456";
  EXPECT_FALSE(filler.wants(arriving));
  arriving.text = "012345678";
  EXPECT_TRUE(filler.wants(arriving));
  EXPECT_EQ(machine.asked, (std::vector<std::uint64_t>{2, 7, 9}));
}

TEST_F(Filling, AMachineThatAsksForNoMoreIsAskedNoMore) {
  machine.answers.push_back({2, nullptr});
  holds({listed(4, "4567", "4567")});
  arriving.text = "0123";
  EXPECT_FALSE(filler.wants(arriving));
  arriving.text = "01234";
  EXPECT_FALSE(filler.wants(arriving));
  EXPECT_EQ(machine.asked.size(), 1U);
}

TEST_F(Filling, BlocksThatCannotBeAreNone) {
  const std::vector<HeldBlocks::Block> wrong = {
      {18, 4, std::string(32, 'x')},
      {~std::uint64_t{0}, 4, std::string(32, 'x')},
      {4, kHeldBlockBytesMax + 1, std::string(32, 'x')},
      {4, 4, "short"},
  };
  for (const HeldBlocks::Block& block : wrong) {
    filler.reset();
    holds({{block, "4567"}});
    arriving.text = "0123";
    EXPECT_FALSE(filler.wants(arriving)) << block.offset;
    arriving.text += "456789abcdefghi";
    EXPECT_FALSE(filler.wants(arriving)) << block.offset;
  }
}

TEST_F(Filling, AnotherSnapshotIsAskedAboutFromItsFront) {
  holds({listed(4, "4567", "4567")});
  arriving.text = "0123";
  ASSERT_TRUE(filler.wants(arriving));
  filler.reset();
  EXPECT_FALSE(filler.wants(arriving)) << "what was held of the first one says nothing";
  EXPECT_EQ(machine.asked.size(), 2U);
}

TEST_F(Filling, AFullDiskIsReported) {
  holds({listed(4, "4567", "4567")});
  arriving.text = "0123";
  ASSERT_TRUE(filler.wants(arriving));
  arriving.full = true;
  const Result<std::uint64_t> copied = filler.copy(arriving);
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.error().code, ErrorCode::overloaded);
}

}  // namespace
}  // namespace leasehold::replica
