// Members that hold most of a snapshot already, as files: what is copied, and what is sent.
#include <leasehold/base/assert.h>
#include <leasehold/node/file_snapshot.h>
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

constexpr auto kHeldPatience = 60s;
constexpr std::size_t kSegmentBytes = 2 * kDigestBlockBytes;

std::string whole_file(const std::string& path) {
  std::string text(std::filesystem::file_size(path), '\0');
  std::ifstream(path, std::ios::binary)
      .read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

/// All commands one after the other, in segments of one length: each is a file once it is full, and
/// changes no more. What it has made durable survives as long as the object does, if forget() says
/// that the process has ended.
class SegmentMachine final : public replica::StateMachine {
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
    static_cast<void>(write_segments());
    durable_ = last_;
    durable_text_ = text_;
    return durable_;
  }
  Result<std::shared_ptr<const replica::Snapshot>> take_snapshot() override {
    const std::lock_guard lock(mutex_);
    std::vector<SnapshotPart> parts = write_segments();
    const std::string tail = folder_.path("tail");
    std::ofstream(tail, std::ios::binary) << text_.substr(parts.size() * kSegmentBytes) << '.';
    // In front, so that a member that has all segments has the end of the snapshot.
    parts.insert(parts.begin(), {"tail", tail});
    auto snapshot = snapshot_of_files(last_, parts);
    std::filesystem::remove(tail);
    return snapshot;
  }
  Result<void> install_snapshot(const replica::Snapshot& snapshot) override {
    const std::string arrived = folder_.path("arrived");
    std::filesystem::remove_all(arrived);
    const auto names = unpack_files(snapshot, arrived);
    if (!names.ok()) return names.error();
    const std::lock_guard lock(mutex_);
    std::string text;
    for (std::size_t i = 1; i < names.value().size(); ++i) {
      const std::string& name = names.value()[i];
      text += whole_file(arrived + "/" + name);
      std::filesystem::rename(arrived + "/" + name, folder_.path(name));
    }
    text += whole_file(arrived + "/tail");
    text.pop_back();
    durable_text_ = text_ = text;
    durable_ = last_ = snapshot.last();
    return {};
  }
  replica::HeldAnswer held_blocks(const replica::Snapshot& arriving,
                                  std::uint64_t arrived) override {
    return held_files(arriving, arrived, [this](const std::string& name, std::uint64_t) {
      if (before_lookup) before_lookup();
      return folder_.path(name);
    });
  }
  /// Runs before it says where a file is.
  std::function<void()> before_lookup;
  void forget() {
    const std::lock_guard lock(mutex_);
    last_ = durable_;
    text_ = durable_text_;
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  std::string segment(int number) const {
    return folder_.path("segment-" + std::to_string(number));
  }

 private:
  /// Those that are full.
  std::vector<SnapshotPart> write_segments() {
    std::vector<SnapshotPart> parts;
    for (std::size_t at = 0; at + kSegmentBytes <= text_.size(); at += kSegmentBytes) {
      const std::string name = "segment-" + std::to_string(parts.size());
      if (parts.size() == digests_.size()) {
        std::ofstream(folder_.path(name), std::ios::binary) << text_.substr(at, kSegmentBytes);
        digests_.push_back(digests_of_file(folder_.path(name)).value());
      }
      parts.push_back({name, folder_.path(name), digests_[parts.size()]});
    }
    return parts;
  }

  const TemporaryFolder folder_;
  mutable std::mutex mutex_;
  raft::Index last_, durable_;
  std::string text_, durable_text_;
  std::vector<std::string> digests_;
};

// ---- The port alone ----

/// The one that receives, and the snapshot that it is sent.
class HeldSnapshots : public ::testing::Test {
 protected:
  /// `segments` full ones and a tail of 1000 bytes; both machines have the first `shared`.
  void prepare(std::size_t segments, std::size_t shared) {
    std::string text;
    while (text.size() < segments * kSegmentBytes + 1000) {
      text += std::to_string(text.size()) + ",";
    }
    text.resize(segments * kSegmentBytes + 1000);
    feed(sender_, text);
    feed(receiver_, text.substr(0, shared * kSegmentBytes + 10));
    snapshot_ = sender_.take_snapshot().value();
    ASSERT_TRUE(receiver_.make_durable().ok());
    open();
  }
  void open() {
    port_.reset();
    port_ = std::make_unique<GroupSnapshots>(pool_, receiver_, folder_.path(), 7, raft::Index(0),
                                             [this](replica::Event event) {
                                               const std::lock_guard lock(mutex_);
                                               events_.push_back(std::move(event));
                                               changed_.notify_all();
                                             });
  }
  static void feed(SegmentMachine& machine, const std::string& text) {
    replica::Command command;
    command.bytes = text;
    machine.apply({command}, raft::Index(50));
  }
  void send(std::uint64_t tag, std::uint64_t offset, std::size_t bytes) {
    raft::ReceivedChunk received;
    received.from = raft::NodeId(2);
    received.chunk.term = raft::Term(3);
    received.chunk.id = {{raft::Term(2), raft::Index(50)}, tag};
    received.chunk.membership.members.push_back({raft::NodeId(1), raft::Uuid{1, 1}, "a:1"});
    received.chunk.membership.voters.push_back(raft::NodeId(1));
    received.chunk.size = snapshot_->size();
    received.chunk.offset = offset;
    bytes = std::min<std::size_t>(bytes, snapshot_->size() - offset);
    std::string data(bytes, '\0');
    ASSERT_TRUE(snapshot_->read(offset, data.data(), bytes).ok());
    sent_ += bytes;
    received.chunk.data = Bytes(std::move(data));
    port_->store(received);
  }
  replica::Event next_event() {
    std::unique_lock lock(mutex_);
    LEASEHOLD_ASSERT(changed_.wait_for(lock, kHeldPatience, [this] { return !events_.empty(); }));
    replica::Event event = std::move(events_.front());
    events_.erase(events_.begin());
    return event;
  }
  /// Each task that was in the line has run.
  void pass_turn() {
    port_->make_durable();
    LEASEHOLD_ASSERT(std::holds_alternative<replica::MachineDurable>(next_event()));
  }
  replica::ChunkStored next() {
    replica::Event event = next_event();
    LEASEHOLD_ASSERT(std::holds_alternative<replica::ChunkStored>(event));
    auto stored = std::get<replica::ChunkStored>(std::move(event));
    copied_ += stored.copied;
    return stored;
  }
  /// As a leader without a window sends it; each chunk twice.
  void send_all(std::uint64_t tag, std::size_t bytes) {
    std::uint64_t at = 0;
    while (at < snapshot_->size()) {
      send(tag, at, bytes);
      send(tag, at, bytes);
      const replica::ChunkStored first = next();
      const replica::ChunkStored second = next();
      ASSERT_FALSE(first.stored.refused || second.stored.refused);
      ASSERT_GE(second.stored.offset, first.stored.offset);
      ASSERT_GT(second.stored.offset, at);
      at = second.stored.offset;
    }
  }
  void expect_the_sender_s_state() {
    const auto staged = GroupSnapshots::complete(folder_.path());
    ASSERT_TRUE(staged.ok()) << staged.error().message;
    ASSERT_TRUE(receiver_.install_snapshot(*staged.value()).ok());
    EXPECT_EQ(receiver_.text(), sender_.text());
  }

  TemporaryFolder folder_;
  SegmentMachine sender_, receiver_;
  std::shared_ptr<const replica::Snapshot> snapshot_;
  std::uint64_t sent_ = 0;
  std::uint64_t copied_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<replica::Event> events_;
  WorkPool pool_{"lh-snap", 1};
  std::unique_ptr<GroupSnapshots> port_;
};

TEST_F(HeldSnapshots, WhatIsHereIsNotSent) {
  prepare(10, 9);
  send_all(9, 100'000);
  EXPECT_GT(copied_, 9 * kSegmentBytes - 200'000);
  EXPECT_LT(sent_, 3 * kSegmentBytes) << "each chunk is sent twice here";
  expect_the_sender_s_state();
}

TEST_F(HeldSnapshots, AFileThatIsNotWhatItsNameSaysIsSent) {
  prepare(4, 4);
  std::fstream(receiver_.segment(1), std::ios::in | std::ios::out | std::ios::binary).put('!');
  std::filesystem::remove(receiver_.segment(2));
  send_all(9, 100'000);
  EXPECT_GT(copied_, 2 * kSegmentBytes);
  EXPECT_LT(copied_, 3 * kSegmentBytes + kDigestBlockBytes);
  expect_the_sender_s_state();
}

TEST_F(HeldSnapshots, TheNextProcessGoesOnWithTheCopying) {
  prepare(20, 20);
  for (int process = 0; process < 4; ++process) {
    send(9, 0, 5'000);
    if (process > 0) std::this_thread::yield();
    open();
    const std::lock_guard lock(mutex_);
    events_.clear();
  }
  send_all(9, 100'000);
  EXPECT_LT(sent_, kSegmentBytes);
  expect_the_sender_s_state();
}

TEST_F(HeldSnapshots, TheLeaderSeesProgressDuringALongCopying) {
  prepare(36, 36);
  send(9, 0, 10'000);
  const replica::ChunkStored first = next();
  EXPECT_GE(first.stored.offset, 64 * kDigestBlockBytes);
  EXPECT_LT(first.stored.offset, snapshot_->size());
  EXPECT_FALSE(first.complete.has_value());
  send(9, first.stored.offset, 1'000);
  const replica::ChunkStored last = next();
  EXPECT_EQ(last.stored.offset, snapshot_->size());
  EXPECT_TRUE(last.complete.has_value());
  EXPECT_EQ(sent_, 11'000U);
  expect_the_sender_s_state();
}

TEST_F(HeldSnapshots, NothingIsCopiedWhileNoChunkWaits) {
  prepare(1, 1);
  std::promise<void> both_are_there;
  receiver_.before_lookup = [gate = both_are_there.get_future().share()] { gate.wait(); };
  send(9, 0, 10'000);
  send(7, 700, 100);  // begins nothing, and ends the waiting
  both_are_there.set_value();
  EXPECT_EQ(next().stored.offset, 10'000U);
  EXPECT_EQ(next().stored.offset, 0U);
  for (int turn = 0; turn < 3; ++turn) pass_turn();
  send(9, 10'000, 1'000);
  const replica::ChunkStored last = next();
  EXPECT_EQ(last.stored.offset, snapshot_->size());
  EXPECT_TRUE(last.complete.has_value());
  expect_the_sender_s_state();
}

TEST_F(HeldSnapshots, AnotherSnapshotTakesThePlaceDuringTheCopying) {
  prepare(20, 20);
  std::promise<void> all_are_there;
  receiver_.before_lookup = [gate = all_are_there.get_future().share()] { gate.wait(); };
  send(9, 0, 5'000);
  send(8, 0, 6'000);
  send(7, 700, 100);  // begins nothing
  all_are_there.set_value();
  const replica::ChunkStored first = next();
  EXPECT_EQ(first.stored.id.tag, 9U);
  EXPECT_EQ(first.stored.offset, 5'000U) << "nothing was copied into that one";
  EXPECT_EQ(next().stored.id.tag, 8U);
  const replica::ChunkStored gap = next();
  EXPECT_EQ(gap.stored.id.tag, 7U);
  EXPECT_EQ(gap.stored.offset, 0U);
  send_all(8, 100'000);
  expect_the_sender_s_state();
}

// ---- Whole nodes ----

class HeldSnapshotNodes : public ::testing::Test {
 protected:
  struct Member {
    SegmentMachine machine;
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
  void start(std::uint64_t id) {
    NodeOptions options;
    options.id = raft::NodeId(id);
    options.data_dir = folder_.path("node" + std::to_string(id));
    options.peers = peers_;
    options.limits.log_tail_bytes = 200'000;
    options.limits.log_cut_bytes = 200'000;
    options.limits.snapshot_chunk_bytes = 50'000;
    options.limits.snapshot_window_bytes = 200'000;
    auto opened =
        Node::open(std::move(options), member(id).machine, member(id).clock, member(id).observer);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    member(id).node = std::move(opened).value();
  }
  void kill(std::uint64_t id) {
    member(id).node.reset();
    member(id).machine.forget();
  }
  Member& member(std::uint64_t id) { return members_[id - 1]; }
  NodeStatus status(std::uint64_t id) {
    auto answer = std::make_shared<std::promise<NodeStatus>>();
    auto future = answer->get_future();
    member(id).node->status([answer](NodeStatus now) { answer->set_value(std::move(now)); });
    LEASEHOLD_ASSERT(future.wait_for(kHeldPatience) == std::future_status::ready);
    return future.get();
  }
  /// Of 100,000 bytes each.
  void write(int count) {
    for (int i = 0; i < count; ++i) {
      std::string command;
      while (command.size() < 100'000) {
        command += std::to_string(++written_) + ".";
      }
      command.resize(100'000);
      const auto result = member(1).node->propose_and_wait(Bytes(std::move(command)), 30s);
      ASSERT_EQ(result.status, replica::ProposeStatus::committed);
    }
  }
  static bool comes(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kHeldPatience;
    while (std::chrono::steady_clock::now() < end) {
      if (condition()) return true;
      std::this_thread::yield();
    }
    return false;
  }
  bool same(std::uint64_t a, std::uint64_t b) {
    return comes([&] { return member(a).machine.text() == member(b).machine.text(); });
  }
  /// By all members together.
  std::uint64_t sent() {
    return status(1).counters.chunk_bytes_sent + status(2).counters.chunk_bytes_sent;
  }
  /// The third one has nine tenths of what comes, and its log is of no use.
  void fall_behind() {
    write(190);
    ASSERT_TRUE(same(1, 3));
    ASSERT_TRUE(comes([&] { return status(3).first > raft::Index(100); }));
    ASSERT_TRUE(member(3).machine.make_durable().ok());
    const raft::Index last = status(3).applied;
    kill(3);
    write(20);
    for (const std::uint64_t id : {1, 2}) {
      ASSERT_TRUE(comes([&] { return status(id).first > last + 1; }));
    }
  }

  TemporaryFolder folder_;
  std::vector<Peer> peers_;
  std::array<Member, 3> members_;
  int written_ = 0;
};

TEST_F(HeldSnapshotNodes, AMemberThatHoldsMostIsSentTheRest) {
  fall_behind();
  start(3);
  ASSERT_TRUE(same(1, 3));
  ASSERT_TRUE(comes([&] { return status(3).counters.snapshots_installed == 1; }));
  const std::uint64_t size = member(1).machine.text().size();
  EXPECT_GT(status(3).counters.snapshot_bytes_copied, size * 8 / 10);
  EXPECT_LT(sent(), size * 2 / 10);
  RecordProperty("bytes_of_the_state", std::to_string(size));
  RecordProperty("bytes_sent", std::to_string(sent()));
  write(3);
  EXPECT_TRUE(same(1, 3));
}

TEST_F(HeldSnapshotNodes, AMemberThatIsKilledDuringTheCopyingComesBack) {
  fall_behind();
  std::fstream(member(3).machine.segment(2), std::ios::in | std::ios::out | std::ios::binary)
      .put('!');
  for (int round = 0; round < 2; ++round) {
    start(3);
    ASSERT_TRUE(comes([&] { return status(3).counters.chunks_received > 0; }));
    kill(3);
  }
  start(3);
  ASSERT_TRUE(same(1, 3));
}

}  // namespace
}  // namespace leasehold::node
