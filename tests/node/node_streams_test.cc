// Nodes whose streams their program makes: NodeOptions::peer_streams.
#include <leasehold/tests/node/node_fixture.h>
#include <leasehold/tls/certificates.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <vector>

namespace leasehold::node {
namespace {

using net::PeerStream;
using net::PeerStreams;

bool open_descriptor(int descriptor) {
  return ::fcntl(descriptor, F_GETFD) >= 0;
}

/// Connects the nodes of one process by socketpairs: no address of it is one of the network.
class Hub {
 public:
  /// What connect() does with its next calls; then it makes streams again.
  enum class Next : std::uint8_t { stream, error, nothing, datagrams, unconnected };

  void plan(Next next, int times) {
    const std::lock_guard<std::mutex> lock(mutex_);
    next_ = next;
    times_ = times;
  }
  void add(const std::string& address, PeerStreams::Accepted accepted) {
    const std::lock_guard<std::mutex> lock(mutex_);
    listening_[address] = std::move(accepted);
  }
  void remove(const std::string& address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    listening_.erase(address);
  }
  bool listens(const std::string& address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return listening_.count(address) > 0;
  }
  std::size_t made() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return made_;
  }
  int spoiled() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return times_;
  }
  void connect(const std::string& address, const PeerStreams::Connected& connected) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Next next = times_ > 0 ? next_ : Next::stream;
    if (times_ > 0) --times_;
    int ends[2] = {-1, -1};
    if (next == Next::nothing) return;
    if (next == Next::unconnected) {
      return connected(PeerStream{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "nobody"});
    }
    const auto listener = listening_.find(address);
    const int type = next == Next::datagrams ? SOCK_DGRAM : SOCK_STREAM;
    if (next == Next::error || listener == listening_.end() ||
        ::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) {
      return connected(Error{ErrorCode::unavailable, "nobody listens at " + address});
    }
    connected(PeerStream{ends[0], address});
    listener->second(PeerStream{ends[1], "a node of this process"});
    ++made_;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, PeerStreams::Accepted> listening_;
  Next next_ = Next::stream;
  int times_ = 0;
  std::size_t made_ = 0;
};

class HubStreams final : public PeerStreams {
 public:
  HubStreams(Hub& hub, bool proves) : hub_(hub), proves_(proves) {}
  Result<void> listen(const std::string& address, Accepted accepted) override {
    if (hub_.listens(address)) return Error{ErrorCode::in_use, "another node is " + address};
    address_ = address;
    hub_.add(address, std::move(accepted));
    return {};
  }
  void connect(const std::string& address, Connected connected) override {
    hub_.connect(address, connected);
  }
  void stop() override { hub_.remove(address_); }
  bool proves_peers() const override { return proves_; }

 private:
  Hub& hub_;
  const bool proves_;
  std::string address_;
};

class NodeStreamsTest : public NodeTest {
 protected:
  void SetUp() override {
    NodeTest::SetUp();
    peers_ = {
        {raft::NodeId(1), "red:1"}, {raft::NodeId(2), "green:1"}, {raft::NodeId(3), "blue:1"}};
  }
  /// The replicas end before what they use.
  void TearDown() override { replicas_.clear(); }
  NodeOptions by_streams(std::uint64_t id, bool proves = true) {
    NodeOptions made = options(id);
    streams_.push_back(std::make_unique<HubStreams>(hub_, proves));
    made.peer_streams = streams_.back().get();
    return made;
  }
  void start_by_streams() {
    for (std::uint64_t id = 1; id <= 3; ++id) start(id, by_streams(id));
  }
  void expect_serving() {
    const std::uint64_t leader = await_leader();
    for (std::uint64_t id = 1; id <= 3; ++id) {
      EXPECT_EQ(replica(id).propose("x").status, replica::ProposeStatus::committed);
    }
    EXPECT_TRUE(replica(follower_of(leader)).read(raft::ReadMode::lease).index.has_value());
  }
  void expect_refused(NodeOptions options, const std::string& words) {
    Replica one;
    const auto opened = open(one, std::move(options));
    ASSERT_FALSE(opened.ok());
    EXPECT_NE(opened.error().message.find(words), std::string::npos) << opened.error().message;
  }

  Hub hub_;
  std::vector<std::unique_ptr<HubStreams>> streams_;
};

TEST_F(NodeStreamsTest, AGroupWithoutTheNetwork) {
  start_by_streams();
  expect_serving();
  const std::uint64_t other = follower_of(await_leader());
  stop(other);
  EXPECT_FALSE(hub_.listens(peers_[other - 1].address));
  start(other, by_streams(other));
  expect_serving();
}

TEST_F(NodeStreamsTest, ANodeJoinsByThem) {
  start_by_streams();
  const std::uint64_t leader = await_leader();
  NodeOptions fourth = by_streams(4);
  fourth.peers.clear();
  fourth.join = {"red:1", "green:1", "blue:1"};
  fourth.listen = "white:1";
  start(4, fourth);
  const MembersResult added = replica(leader).node->change_members_and_wait(
      {{MemberEdit::What::add, raft::NodeId(4), "white:1"}}, kLong);
  EXPECT_EQ(added.status, replica::GroupCallStatus::done) << added.reason;
  // It may not know yet that it is a member.
  EXPECT_TRUE(eventually(
      [this] { return replica(4).propose("y").status == replica::ProposeStatus::committed; }));
}

TEST_F(NodeStreamsTest, WhatTheyDoNotProveAKeyHasTo) {
  expect_refused(by_streams(1, false), "reached by streams of the program");
  ASSERT_FALSE(hub_.listens("red:1"));
  const std::string key = folder_.path("group.key");
  ASSERT_TRUE(tls::make_group_key(key, false).ok());
  for (std::uint64_t id = 1; id <= 3; ++id) {
    NodeOptions options = by_streams(id, false);
    options.peer_security.dial = net::Protection::key;
    options.peer_security.key_file = key;
    start(id, options);
  }
  expect_serving();
}

TEST_F(NodeStreamsTest, AStreamThatIsNoneIsAFailedDial) {
  for (const Hub::Next next : {Hub::Next::error, Hub::Next::datagrams, Hub::Next::unconnected}) {
    hub_.plan(next, 7);
    start_by_streams();
    expect_serving();
    EXPECT_EQ(hub_.spoiled(), 0);
    for (std::uint64_t id = 1; id <= 3; ++id) stop(id);
  }
}

TEST_F(NodeStreamsTest, ADialThatNeverEndsIsTriedAgain) {
  hub_.plan(Hub::Next::nothing, 6);
  start_by_streams();
  expect_serving();
}

/// Completes its connects when the test says so.
class LateStreams final : public PeerStreams {
 public:
  Result<void> listen(const std::string&, Accepted accepted) override {
    accepted_ = std::move(accepted);
    return {};
  }
  void connect(const std::string&, Connected connected) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back(std::move(connected));
  }
  void stop() override { ++stops_; }
  bool proves_peers() const override { return true; }
  std::size_t waiting() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return waiting_.size();
  }
  int stops() const { return stops_; }
  /// Gives every call the same kind of stream: the ends that the node should close.
  std::vector<int> complete() {
    std::vector<int> given;
    const auto stream = [&given] {
      int ends[2];
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      ::close(ends[1]);
      given.push_back(ends[0]);
      return PeerStream{ends[0], "late"};
    };
    for (const Connected& connected : waiting_) connected(stream());
    accepted_(stream());
    return given;
  }

 private:
  std::mutex mutex_;
  Accepted accepted_;
  std::vector<Connected> waiting_;
  int stops_ = 0;
};

TEST_F(NodeStreamsTest, StreamsThatComeWhenTheNodeHasEndedAreClosed) {
  LateStreams streams;
  NodeOptions options = by_streams(1);
  options.peer_streams = &streams;
  start(1, options);
  ASSERT_TRUE(eventually([&] { return streams.waiting() == 2; }));
  EXPECT_EQ(streams.stops(), 0);
  stop(1);
  EXPECT_EQ(streams.stops(), 1);
  const std::vector<int> given = streams.complete();
  ASSERT_EQ(given.size(), 3U);
  for (const int descriptor : given) EXPECT_FALSE(open_descriptor(descriptor));
}

TEST_F(NodeStreamsTest, WhatCannotBeIsRefused) {
  NodeOptions with_deputy = by_streams(1);
  with_deputy.deputy = "leasehold-deputy";
  expect_refused(with_deputy, "deputy");
  start(1, by_streams(1));
  NodeOptions twice = by_streams(1);
  twice.data_dir = dir(2);
  expect_refused(twice, "another node is red:1");
}

}  // namespace
}  // namespace leasehold::node
