// A server for tests of loads: answers each request as a function says, on a thread of its own.
#pragma once

#include <leasehold/bench/floors/record_requests.h>
#include <leasehold/bench/socket.h>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::bench {

/// The words of a request.
inline std::vector<std::string> words_of(std::string_view request) {
  std::vector<std::string> words;
  std::size_t at = request.find("\r\n") + 2;
  while (at < request.size()) {
    const std::size_t end = request.find("\r\n", at);
    const auto length = std::stoul(std::string(request.substr(at + 1, end - at - 1)));
    words.emplace_back(request.substr(end + 2, length));
    at = end + 2 + length + 2;
  }
  return words;
}

class AnsweringServer {
 public:
  /// The reply to a request; empty: it hangs up instead.
  using Answer = std::function<std::string(const std::vector<std::string>& words)>;

  explicit AnsweringServer(Answer answer) : answer_(std::move(answer)) {
    auto listener = listen_tcp("127.0.0.1:0");
    EXPECT_TRUE(listener.ok());
    listener_ = std::move(listener).value();
    sockaddr_in bound{};
    socklen_t length = sizeof bound;
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&bound), &length);
    address_ = "127.0.0.1:" + std::to_string(ntohs(bound.sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  ~AnsweringServer() {
    over_ = true;
    thread_.join();
  }
  const std::string& address() const { return address_; }

 private:
  struct Client {
    Descriptor socket;
    std::string input;
  };

  void serve() {
    while (!over_) {
      std::vector<pollfd> polled = {{listener_.get(), POLLIN, 0}};
      for (const Client& client : clients_) polled.push_back({client.socket.get(), POLLIN, 0});
      if (poll(polled.data(), polled.size(), 10) <= 0) continue;
      for (std::size_t i = polled.size() - 1; i > 0; --i) {
        if (polled[i].revents != 0 && !read_from(clients_[i - 1])) {
          clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i) - 1);
        }
      }
      if (polled[0].revents == 0) continue;
      auto accepted = accept_tcp(listener_);
      if (accepted) clients_.push_back({std::move(accepted).value(), ""});
    }
  }

  bool read_from(Client& client) {
    std::array<char, 64U << 10U> chunk;
    const auto got = read_some(client.socket, chunk.data(), chunk.size());
    if (!got) return false;
    client.input.append(chunk.data(), got.value());
    for (;;) {
      const RecordRequest request = first_request(client.input);
      if (request.kind == RecordRequest::Kind::incomplete) return true;
      if (request.kind == RecordRequest::Kind::malformed) return false;
      const std::string reply = answer_(words_of(client.input.substr(0, request.length)));
      if (reply.empty() || !write_all(client.socket, reply)) return false;
      client.input.erase(0, request.length);
    }
  }

  Answer answer_;
  Descriptor listener_;
  std::string address_;
  std::vector<Client> clients_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace leasehold::bench
