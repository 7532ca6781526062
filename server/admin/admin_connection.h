// One connection of the admin port: one request, one answer, and an end.
#pragma once

#include <leasehold/server/admin/admin_routes.h>
#include <leasehold/server/front/client_channel.h>
#include <leasehold/server/front/server_state.h>

#include <asio/steady_timer.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace leasehold::server {

/// On the thread of its socket. What it has begun keeps it.
class AdminConnection : public std::enable_shared_from_this<AdminConnection> {
 public:
  /// Who is answered.
  struct Door {
    bool plain = true;         ///< one without TLS, too
    bool certificate = false;  ///< only one with the certificate of a user
  };
  struct Owner {
    ServerState& state;
    AdminCounts& counts;
    Door door;
    /// Answers a complete head, later or at once.
    std::function<void(const std::string& head, std::function<void(std::string)> done)> answer;
    std::function<void(const AdminConnection*)> ended;
  };

  /// `owner` outlives it.
  AdminConnection(ClientChannel::Socket socket, Owner& owner)
      : owner_(owner), channel_(std::move(socket)), deadline_(channel_.socket().get_executor()) {}

  void start();
  /// It has not asked anything yet.
  bool is_asking() const { return asking_; }
  void close();

 private:
  void limit(std::chrono::seconds time);
  void greet();
  void greet_again(ClientChannel::Socket::wait_type what);
  void read();
  void refuse(int status, const char* reason, const char* text);
  void write(std::string answer);
  void write_more(std::size_t sent);
  void say_farewell();
  void discard();

  Owner& owner_;
  ClientChannel channel_;
  asio::steady_timer deadline_;
  bool asking_ = true;
  bool closed_ = false;
  std::string head_;
  std::array<char, 4096> buffer_{};
  std::string answer_;
  std::size_t discarded_ = 0;
};

}  // namespace leasehold::server
