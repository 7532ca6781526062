// A transport of your own: three nodes that reach each other by Unix-domain sockets in one folder.
// A real program runs one node per process. Whatever gives a connected stream socket does as well:
// a proxy, a VM socket, one end of a socketpair whose other end your own transport serves.
#include <leasehold/node/node.h>
#include <leasehold/node/system_clock.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using namespace leasehold;

/// "red:1" is the socket `red:1` of the folder, which only this user can enter.
class UnixStreams final : public net::PeerStreams {
 public:
  explicit UnixStreams(std::string folder) : folder_(std::move(folder)) {}
  ~UnixStreams() override { stop(); }

  Result<void> listen(const std::string& address, Accepted accepted) override {
    const sockaddr_un at = place(address);
    ::unlink(at.sun_path);  // what a process that was killed has left
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
        ::listen(listener_, 64) != 0) {
      return Error{ErrorCode::io, "cannot listen at " + folder_ + "/" + address};
    }
    accepts_ = std::thread([this, accepted = std::move(accepted)] {
      for (;;) {
        const int stream = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (stream < 0) return;
        accepted({stream, "a process of this user"});
      }
    });
    return {};
  }
  // Does not wait: the other end need not accept for it.
  void connect(const std::string& address, Connected connected) override {
    const sockaddr_un at = place(address);
    const int stream = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (::connect(stream, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) {
      return connected(net::PeerStream{stream, address});
    }
    ::close(stream);
    connected(Error{ErrorCode::unavailable, "nobody listens at " + address});
  }
  void stop() override {
    if (!accepts_.joinable()) return;
    ::shutdown(listener_, SHUT_RDWR);
    accepts_.join();
    ::close(listener_);
  }
  bool proves_peers() const override { return true; }

 private:
  sockaddr_un place(const std::string& address) const {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::strncpy(at.sun_path, (folder_ + "/" + address).c_str(), sizeof at.sun_path - 1);
    return at;
  }

  const std::string folder_;
  int listener_ = -1;
  std::thread accepts_;
};

/// What is replicated: how many commands there were.
class Count final : public replica::StateMachine {
 public:
  raft::Index durable_index() const override { return raft::Index(0); }
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands, raft::Index) override {
    std::vector<Bytes> results;
    for (std::size_t i = 0; i < commands.size(); ++i)
      results.emplace_back(std::to_string(++count_));
    return results;
  }

 private:
  long count_ = 0;
};

int main() {
  char folder[] = "/tmp/streamsXXXXXX";  // a path of a Unix-domain socket is short
  if (::mkdtemp(folder) == nullptr) return 1;
  const std::vector<node::Peer> peers = {
      {raft::NodeId(1), "red:1"}, {raft::NodeId(2), "green:1"}, {raft::NodeId(3), "blue:1"}};
  node::SystemClock clock;
  replica::Observer quiet;
  Count counts[3];
  std::unique_ptr<UnixStreams> streams[3];  // they outlive the nodes
  std::unique_ptr<node::Node> nodes[3];
  for (int i = 0; i < 3; ++i) {
    streams[i] = std::make_unique<UnixStreams>(folder);
    node::NodeOptions options;
    options.id = peers[i].id;
    options.data_dir = std::string(folder) + "/node" + std::to_string(i + 1);
    options.peers = peers;
    options.peer_streams = streams[i].get();
    auto opened = node::Node::open(options, counts[i], clock, quiet);
    if (!opened.ok()) {
      std::fprintf(stderr, "node %d: %s\n", i + 1, opened.error().message.c_str());
      return 1;
    }
    nodes[i] = std::move(opened).value();
  }
  for (int i = 0; i < 3; ++i) {
    const replica::ProposeResult added = nodes[i]->propose_and_wait(Bytes("one more"), 20s);
    const replica::ReadResult read = nodes[i]->read_point(raft::ReadMode::lease, 20s);
    if (added.status != replica::ProposeStatus::committed || !read.index) return 1;
    std::printf("through %s: %s commands\n", peers[i].address.c_str(),
                std::string(added.result.view()).c_str());
  }
  for (auto& node : nodes) node.reset();
  std::filesystem::remove_all(folder);
}
