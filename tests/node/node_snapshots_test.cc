// The thread that stores snapshots, on a real disk, and nodes that are brought up to date by one.
#include <leasehold/base/assert.h>
#include <leasehold/node/node.h>
#include <leasehold/node/node_snapshots.h>
#include <leasehold/node/system_clock.h>
#include <leasehold/tests/base/temporary_folder.h>
#include <leasehold/tests/node/free_ports.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::node {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 60s;

/// Bytes in memory.
class TextSnapshot final : public replica::Snapshot {
 public:
  TextSnapshot(raft::Index last, std::string text) : last_(last), text_(std::move(text)) {}
  raft::Index last() const override { return last_; }
  std::uint64_t size() const override { return text_.size(); }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    LEASEHOLD_ASSERT(offset + bytes <= text_.size());
    std::memcpy(to, text_.data() + offset, bytes);
    return {};
  }

 private:
  raft::Index last_;
  std::string text_;
};

/// All commands one after the other. What it has made durable survives as long as the object does,
/// if forget() says that the process has ended.
class TextMachine final : public replica::StateMachine {
 public:
  raft::Index durable_index() const override {
    const std::lock_guard lock(mutex_);
    return durable_;
  }
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands,
                           raft::Index last) override {
    const std::lock_guard lock(mutex_);
    for (const replica::Command& command : commands) text_ += command.bytes;
    last_ = last;
    return std::vector<Bytes>(commands.size());
  }
  Result<raft::Index> make_durable() override {
    const std::lock_guard lock(mutex_);
    durable_ = last_;
    durable_text_ = text_;
    return durable_;
  }
  Result<std::shared_ptr<const replica::Snapshot>> take_snapshot() override {
    const std::lock_guard lock(mutex_);
    return std::shared_ptr<const replica::Snapshot>(
        std::make_shared<TextSnapshot>(last_, std::to_string(last_.value()) + ":" + text_));
  }
  Result<void> install_snapshot(const replica::Snapshot& snapshot) override {
    std::string bytes(static_cast<std::size_t>(snapshot.size()), '\0');
    if (const auto read = snapshot.read(0, bytes.data(), bytes.size()); !read.ok()) return read;
    const std::lock_guard lock(mutex_);
    durable_text_ = text_ = bytes.substr(bytes.find(':') + 1);
    durable_ = last_ = snapshot.last();
    ++installs_;
    return {};
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    last_ = durable_;
    text_ = durable_text_;
  }
  void wipe() {
    const std::lock_guard lock(mutex_);
    last_ = durable_ = raft::Index(0);
    text_.clear();
    durable_text_.clear();
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  int installs() const {
    const std::lock_guard lock(mutex_);
    return installs_;
  }

 private:
  mutable std::mutex mutex_;
  raft::Index last_, durable_;
  std::string text_, durable_text_;
  int installs_ = 0;
};

raft::Membership one_member() {
  raft::Membership membership;
  membership.members.push_back({raft::NodeId(1), raft::Uuid{1, 1}, "127.0.0.1:7001"});
  membership.voters.push_back(raft::NodeId(1));
  return membership;
}

/// The thread, and its newest answers.
class Store {
 public:
  explicit Store(const TemporaryFolder& folder, raft::Index durable = raft::Index(0))
      : thread_(pool_, machine_, folder.path(), 7, durable, [this](replica::Event event) {
          const std::lock_guard lock(mutex_);
          events_.push_back(std::move(event));
          changed_.notify_all();
        }) {}

  /// `text` is the whole snapshot; sends the part at `offset`.
  replica::ChunkStored put(std::uint64_t tag, const std::string& text, std::size_t offset,
                           std::size_t bytes) {
    raft::ReceivedChunk received;
    received.from = raft::NodeId(2);
    received.chunk.term = raft::Term(3);
    received.chunk.id = {{raft::Term(2), raft::Index(50)}, tag};
    received.chunk.membership = one_member();
    received.chunk.size = text.size();
    received.chunk.offset = offset;
    received.chunk.data = Bytes(text.substr(offset, bytes));
    thread_.store(received);
    replica::Event event = next();
    LEASEHOLD_ASSERT(std::holds_alternative<replica::ChunkStored>(event));
    return std::get<replica::ChunkStored>(std::move(event));
  }
  replica::Event next() {
    std::unique_lock lock(mutex_);
    LEASEHOLD_ASSERT(changed_.wait_for(lock, kPatience, [this] { return !events_.empty(); }));
    replica::Event event = std::move(events_.front());
    events_.erase(events_.begin());
    return event;
  }
  GroupSnapshots& thread() { return thread_; }

 private:
  TextMachine machine_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<replica::Event> events_;
  WorkPool pool_{"lh-snap", 1};
  GroupSnapshots thread_;
};

std::string text_of(std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += std::to_string(text.size()) + ",";
  text.resize(bytes);
  return text;
}

TEST(GroupSnapshots, WhatArrivedIsCompleteWhenTheLastByteIsThere) {
  const TemporaryFolder folder;
  const std::string text = text_of(700'000);
  Store store(folder);
  EXPECT_EQ(store.put(9, text, 1000, 1000).stored.offset, 0U) << "it begins at its beginning";
  EXPECT_EQ(store.put(9, text, 0, 300'000).stored.offset, 300'000U);
  EXPECT_EQ(store.put(9, text, 400'000, 1000).stored.offset, 300'000U) << "a gap";
  EXPECT_EQ(store.put(9, text, 0, 1000).stored.offset, 300'000U) << "once more";
  const replica::ChunkStored last = store.put(9, text, 300'000, 400'000);
  EXPECT_EQ(last.stored.offset, 700'000U);
  EXPECT_EQ(last.complete, one_member());
  const replica::ChunkStored again = store.put(9, text, 600'000, 100'000);
  EXPECT_FALSE(again.complete.has_value());
  EXPECT_EQ(again.stored.offset, 700'000U);
  EXPECT_TRUE(store.put(10, text, 0, 1000).stored.refused) << "one waits to be installed";

  const auto staged = GroupSnapshots::complete(folder.path());
  ASSERT_TRUE(staged.ok()) << staged.error().message;
  std::string read(700'000, '\0');
  ASSERT_TRUE(staged.value()->read(0, read.data(), read.size()).ok());
  EXPECT_EQ(read, text);
  EXPECT_EQ(staged.value()->last(), raft::Index(50));
  store.thread().installed();
  EXPECT_FALSE(store.put(10, text, 0, 1000).stored.refused);
  EXPECT_FALSE(std::filesystem::exists(folder.path("snapshot/complete")));
}

TEST(GroupSnapshots, APartSurvivesTheProcess) {
  const TemporaryFolder folder;
  const std::string text = text_of(900'000);
  constexpr std::uint64_t kBlock = 256U << 10U;
  { EXPECT_EQ(Store(folder).put(9, text, 0, 600'000).stored.offset, 600'000U); }
  {
    Store store(folder);
    EXPECT_EQ(store.put(9, text, 0, 1000).stored.offset, 2 * kBlock) << "whole blocks count";
    EXPECT_EQ(store.put(9, text, 2 * kBlock, 300'000).stored.offset, 2 * kBlock + 300'000);
  }
  {
    // A loss on the disk is detected.
    std::fstream file(folder.path("snapshot/incoming"),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(65536 + static_cast<std::streamoff>(kBlock) + 5);
    file.put('!');
  }
  Store store(folder);
  EXPECT_EQ(store.put(9, text, 0, 1000).stored.offset, kBlock);
  EXPECT_EQ(store.put(8, text, 0, 1000).stored.offset, 1000U) << "another one takes its place";
  EXPECT_EQ(store.put(9, text, kBlock, 1000).stored.offset, 0U);
}

TEST(GroupSnapshots, ADamagedHeadIsNoPart) {
  const TemporaryFolder folder;
  const std::string text = text_of(300'000);
  { Store(folder).put(9, text, 0, 290'000); }
  {
    std::fstream file(folder.path("snapshot/incoming"),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(40);
    file.put('!');
  }
  Store store(folder);
  EXPECT_EQ(store.put(9, text, 1000, 1000).stored.offset, 0U);
  EXPECT_EQ(store.put(9, text, 0, 1000).stored.offset, 1000U);
}

TEST(GroupSnapshots, ACompleteSnapshotThatWasNotInstalledIsOfferedAgain) {
  const TemporaryFolder folder;
  const std::string text = text_of(10'000);
  { EXPECT_TRUE(Store(folder).put(9, text, 0, 10'000).complete.has_value()); }
  {
    Store store(folder);
    EXPECT_TRUE(store.put(9, text, 0, 1000).complete.has_value()) << "it has all of it already";
  }
  Store store(folder, raft::Index(50));
  EXPECT_EQ(store.put(9, text, 0, 1000).stored.offset, 1000U) << "that one was installed";
}

TEST(SnapshotHead, IsReadBackAndDamageIsSeen) {
  const SnapshotHead head{7, {{raft::Term(2), raft::Index(3)}, 4}, one_member(), 5};
  const std::string bytes = encode_snapshot_head(head);
  ASSERT_TRUE(decode_snapshot_head(bytes).ok());
  EXPECT_EQ(decode_snapshot_head(bytes).value(), head);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(decode_snapshot_head(bytes.substr(0, i)).ok()) << i;
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(decode_snapshot_head(damaged).ok()) << i;
  }
}

TEST(SnapshotHead, BytesArePinned) {
  const SnapshotHead head{
      0x0102030405060708U, {{raft::Term(0x11), raft::Index(0x1213)}, 0x1415}, one_member(), 0x1617};
  std::string bytes("LHSN\1\0\0\0\10\7\6\5\4\3\2\1", 16);
  bytes += std::string("\x11\0\0\0\0\0\0\0\x13\x12\0\0\0\0\0\0", 16);
  bytes += std::string("\x15\x14\0\0\0\0\0\0\x17\x16\0\0\0\0\0\0\x2c\0\0\0", 20);
  bytes += raft::encode_membership(head.membership).view();
  EXPECT_EQ(encode_snapshot_head(head), bytes + "\x85u\x8c\xb3");
}

// ---- Whole nodes ----

class SnapshotNodes : public ::testing::Test {
 protected:
  struct Replica {
    TextMachine machine;
    SystemClock clock;
    replica::Observer observer;
    std::unique_ptr<Node> node;
  };

  void SetUp() override {
    const auto ports = free_ports(3);
    for (std::uint64_t id = 1; id <= 3; ++id) {
      peers_.push_back({raft::NodeId(id), address_of(ports[id - 1])});
    }
    for (std::uint64_t id = 1; id <= 3; ++id) start(id);
  }
  Result<void> open(std::uint64_t id) {
    NodeOptions options;
    options.id = raft::NodeId(id);
    options.data_dir = folder_.path("node" + std::to_string(id));
    options.peers = peers_;
    options.limits.log_tail_bytes = 20'000;
    options.limits.log_cut_bytes = 20'000;
    options.limits.snapshot_chunk_bytes = 10'000;
    options.limits.snapshot_window_bytes = 40'000;
    Replica& replica = replicas_[id - 1];
    auto opened = Node::open(std::move(options), replica.machine, replica.clock, replica.observer);
    if (!opened.ok()) return opened.error();
    replica.node = std::move(opened).value();
    return {};
  }
  void start(std::uint64_t id) {
    const Result<void> opened = open(id);
    if (!opened.ok()) ADD_FAILURE() << opened.error().message;
  }
  void kill(std::uint64_t id) {
    replica(id).node.reset();
    replica(id).machine.forget();
  }
  Replica& replica(std::uint64_t id) { return replicas_[id - 1]; }
  NodeStatus status(std::uint64_t id) {
    auto answer = std::make_shared<std::promise<NodeStatus>>();
    auto future = answer->get_future();
    replica(id).node->status([answer](NodeStatus now) { answer->set_value(std::move(now)); });
    LEASEHOLD_ASSERT(future.wait_for(kPatience) == std::future_status::ready);
    return future.get();
  }
  void write(std::uint64_t id, int count) {
    for (int i = 0; i < count; ++i) {
      std::string command = std::to_string(++written_) + ".";
      command.resize(1000, 'x');
      const replica::ProposeResult result =
          replica(id).node->propose_and_wait(Bytes(std::move(command)), 30s);
      ASSERT_EQ(result.status, replica::ProposeStatus::committed);
    }
  }
  static bool eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < end) {
      if (condition()) return true;
      std::this_thread::yield();
    }
    return false;
  }
  bool same(std::uint64_t a, std::uint64_t b) {
    return eventually([&] { return replica(a).machine.text() == replica(b).machine.text(); });
  }

  TemporaryFolder folder_;
  std::vector<Peer> peers_;
  std::array<Replica, 3> replicas_;
  int written_ = 0;
};

TEST_F(SnapshotNodes, AMemberThatWasAwayComesBackByASnapshot) {
  write(1, 5);
  kill(3);
  write(1, 200);
  ASSERT_TRUE(eventually([&] { return status(1).first > raft::Index(100); }));
  ASSERT_TRUE(eventually([&] { return status(2).first > raft::Index(100); }));
  start(3);
  ASSERT_TRUE(same(1, 3));
  EXPECT_EQ(replica(3).machine.installs(), 1);
  EXPECT_TRUE(eventually([&] { return status(3).counters.snapshots_installed == 1; }));
  write(1, 50);
  EXPECT_TRUE(same(1, 3));
  // All of them stop, and start on logs that were cut.
  for (std::uint64_t id = 1; id <= 3; ++id) kill(id);
  for (std::uint64_t id = 1; id <= 3; ++id) start(id);
  write(2, 10);
  EXPECT_TRUE(same(2, 3));
  EXPECT_TRUE(same(2, 1));
  EXPECT_EQ(replica(3).machine.installs(), 1);
}

TEST_F(SnapshotNodes, AMemberThatIsKilledDuringTheTransferComesBack) {
  write(1, 5);
  kill(3);
  write(1, 300);
  ASSERT_TRUE(eventually([&] { return status(1).first > raft::Index(100); }));
  for (int round = 0; round < 4; ++round) {
    start(3);
    const auto enough = static_cast<std::uint64_t>(round);
    ASSERT_TRUE(eventually([&] {
      const NodeStatus now = status(3);
      return now.counters.chunks_received > enough || now.first > raft::Index(100);
    }));
    kill(3);
  }
  start(3);
  ASSERT_TRUE(same(1, 3));
}

TEST_F(SnapshotNodes, ALogWithoutItsStateMachineIsRefusedWithTheReason) {
  write(1, 200);
  ASSERT_TRUE(eventually([&] { return status(3).first > raft::Index(100); }));
  kill(3);
  replica(3).machine.wipe();
  const Result<void> opened = open(3);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::corrupted);
  EXPECT_NE(opened.error().message.find("no snapshot fills the gap"), std::string::npos)
      << opened.error().message;
}

}  // namespace
}  // namespace leasehold::node
