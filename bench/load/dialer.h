// Opens connections and asks for the layout on a thread of its own, so that a server that is away
// never holds up the load at the others.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/bench/load/etcd_client.h>
#include <leasehold/bench/load/layout.h>
#include <leasehold/bench/load/options.h>
#include <leasehold/bench/load/talk.h>
#include <leasehold/bench/socket.h>
#include <leasehold/client/resp_client.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::bench {

/// What the load holds of a server.
struct Connection {
  Descriptor socket;
  std::unique_ptr<Talk> talk;
};

/// A connection as the load wants it: logged in, in the read mode, and not blocking. Blocks, at
/// most for some seconds. Errors: io, unavailable, invalid_argument (the server refuses the login
/// or the mode).
Result<Connection> open_connection(const std::string& address, const LoadOptions& options);

/// Any thread calls it; it has one of its own.
class Dialer {
 public:
  struct Answer {
    std::size_t connection = 0;
    std::string server;
    Result<Connection> opened = Connection();
  };

  /// `options` outlives it. Asks for the layout once, before it returns. Errors: no server answers.
  static Result<std::unique_ptr<Dialer>> start(const LoadOptions& options);
  ~Dialer();
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;

  /// Of the start.
  const Layout& first_layout() const { return first_layout_; }

  /// Opens `connection` to `server`: its answer comes later.
  void dial(std::size_t connection, std::string server);
  /// What has been opened, or could not be, since the last call.
  std::vector<Answer> answers();
  /// A layout that differs from the last one that was taken.
  std::optional<Layout> new_layout();
  /// Readable when there is something to take; take_wake() makes it unreadable.
  int wake_fd() const { return wake_.get(); }
  void take_wake();

 private:
  explicit Dialer(const LoadOptions& options) : options_(options) {}
  void run();
  Result<Layout> ask_layout();
  Result<Layout> ask_etcd_layout();
  Result<EtcdMember> ask_member(const std::string& server);
  Result<client::RespValue> ask(const std::string& server, const std::vector<std::string>& words);
  void wake();

  const LoadOptions& options_;
  Layout first_layout_;
  // Of the thread alone, and of the start before it.
  std::size_t asked_ = 0;  ///< the server that told the last layout
  std::map<std::string, client::RespClient> asking_;
  std::map<std::string, EtcdClient> asking_etcd_;
  Descriptor wake_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::deque<std::pair<std::size_t, std::string>> wanted_;
  std::vector<Answer> answers_;
  std::optional<Layout> new_layout_;

  std::thread thread_;
};

}  // namespace leasehold::bench
