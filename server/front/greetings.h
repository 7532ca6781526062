// Clients before their first request, where the client port speaks TLS: who speaks it, and their
// handshakes.
#pragma once

#include <leasehold/server/front/client_channel.h>
#include <leasehold/server/front/server_state.h>

#include <asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold::server {

/// A client that does not come to the end of its handshake in this time is closed. So is one that
/// does not begin; but where the port serves clients without TLS, too, that one has the time of an
/// idle connection (LiveSettings::idle_timeout()).
inline constexpr std::chrono::seconds kGreetingTimeMax{5};
/// Handshakes that are under way at one time. The oldest one whose client is silent makes room for
/// another. Each takes about 50 KiB.
inline constexpr std::size_t kGreetingsMax = 1024;

/// Of one thread, and on it. A step of a handshake is up to a millisecond of work: each is a turn
/// of its own, between which the thread polls its sockets.
class Greetings {
 public:
  /// Takes over a client that may send requests.
  using Welcome = std::function<void(ClientChannel channel, std::string address)>;

  /// The arguments outlive it.
  Greetings(asio::io_context& io, ServerState& state, Counters& counters, Welcome welcome)
      : io_(io), state_(state), counters_(counters), welcome_(std::move(welcome)) {}

  /// A client that has connected, and is among ServerState::clients. `mode`: in which it was let
  /// in, optional or on.
  void begin(ClientChannel::Socket socket, std::string address, ClientTls::Mode mode);
  /// Call it several times a second.
  void end_late();
  /// No more are taken.
  void close_all();
  /// When the one came that has been here for longest and waits for its client; none: there is
  /// none.
  std::optional<std::chrono::nanoseconds> oldest() const;
  /// Closes it.
  void end_oldest();

 private:
  struct Newcomer;
  using NewcomerPtr = std::shared_ptr<Newcomer>;

  NewcomerPtr find_oldest() const;
  void wait(const NewcomerPtr& newcomer, asio::socket_base::wait_type what);
  void take_turn_later(const NewcomerPtr& newcomer);
  void run_turn();
  void take_step(const NewcomerPtr& newcomer);
  void fail(const NewcomerPtr& newcomer, const Greeting& greeting);
  /// What it still sends is dropped, or the system would discard the answer to it.
  void drop_input(const NewcomerPtr& newcomer);
  void start_clock(const NewcomerPtr& newcomer);
  void make_room();
  void end(const NewcomerPtr& newcomer);
  void note_failure(const std::string& address, std::string_view problem);

  asio::io_context& io_;
  ServerState& state_;
  Counters& counters_;
  Welcome welcome_;
  std::map<std::uint64_t, NewcomerPtr> all_;
  std::map<std::uint64_t, NewcomerPtr> timed_;  ///< that have to end; the oldest first
  std::uint64_t next_ = 1;
  std::deque<NewcomerPtr> turns_;
  bool turn_scheduled_ = false;
  bool closed_ = false;
  std::size_t failed_ = 0;  ///< since failure_said_
  std::chrono::nanoseconds failure_said_{0};
};

}  // namespace leasehold::server
