// The small process beside a node that tells the peers when the node's process has ended.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/net/handshake.h>
#include <leasehold/raft/types.h>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace leasehold::node {

/// Starts leasehold-deputy (deputy/deputy_main.cc), keeps it informed, and starts it again when it
/// is gone. The node's thread. A node without one works as well; its peers wait for its lease when
/// it dies. A deputy is a child process of this one.
class Deputy {
 public:
  using Notice = std::function<void(std::string line)>;
  struct Target {
    raft::NodeId id;
    net::HostPort at;
    friend bool operator==(const Target&, const Target&) = default;
  };

  /// `program` is the file to run; `say` gets lines for people.
  Deputy(asio::io_context& io, std::string program, const raft::Peer& self, Notice say);
  ~Deputy();
  Deputy(const Deputy&) = delete;
  Deputy& operator=(const Deputy&) = delete;

  /// Errors: not_found when there is no such program, io. `notice` is what it has to send.
  Result<void> start(std::string notice);
  /// Where it has to send it.
  void set_peers(std::vector<Target> peers);
  enum class Ending : std::uint8_t {
    silent,  ///< the deputy ends at once: nobody misses this process
    tells,   ///< it stays for the end of this process, for ten seconds at most
  };
  void stop(Ending ending);
  bool runs() const { return process_ > 0; }
  pid_t process() const { return process_; }
  std::uint64_t restarts() const { return restarts_; }

 private:
  Result<void> spawn();
  void inform();
  void send(char kind, std::string_view content);
  void watch();
  void lost();
  void again_later();

  asio::io_context& io_;
  const std::string program_;
  const Notice say_;
  std::string notice_;
  const raft::Peer self_;
  std::vector<Target> peers_;
  pid_t process_ = 0;
  std::chrono::seconds pause_{1};  ///< before it is started again
  std::unique_ptr<asio::posix::stream_descriptor> channel_;
  asio::steady_timer again_;
  asio::steady_timer settled_;  ///< runs while a deputy is new
  std::uint64_t restarts_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace leasehold::node
