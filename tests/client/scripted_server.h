// A server that gives the answers of a test.
#pragma once

#include <leasehold/bench/socket.h>
#include <leasehold/client/resp_client.h>

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::client {

/// Takes any number of connections, and gives what arrives to the test, command by command.
class ScriptedServer {
 public:
  using Words = std::vector<std::string>;
  /// The bytes of the answer; empty: silence. None: the connection is closed. Called from threads.
  using Answer = std::function<std::optional<std::string>(const Words&)>;

  explicit ScriptedServer(Answer answer) : answer_(std::move(answer)) {
    auto listener = bench::listen_tcp("127.0.0.1:0");
    EXPECT_TRUE(listener.ok());
    listener_ = std::move(listener).value();
    sockaddr_in bound{};
    socklen_t length = sizeof bound;
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&bound), &length);
    address_ = "127.0.0.1:" + std::to_string(ntohs(bound.sin_port));
    thread_ = std::thread([this] { accept_all(); });
  }
  ~ScriptedServer() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  const std::string& address() const { return address_; }
  /// All that were sent so far and begin with `first`.
  std::vector<Words> sent(const std::string& first) const {
    const std::lock_guard lock(mutex_);
    std::vector<Words> out;
    for (const Words& words : sent_) {
      if (words.front() == first) out.push_back(words);
    }
    return out;
  }

 private:
  void accept_all() {
    std::vector<bench::Descriptor> sockets;
    std::vector<std::thread> threads;
    // Room for all, so that none moves while its thread reads.
    sockets.reserve(kConnectionsMax);
    while (sockets.size() < kConnectionsMax) {
      auto socket = bench::accept_tcp(listener_);
      if (!socket) break;
      sockets.push_back(std::move(socket).value());
      threads.emplace_back([this, &own = sockets.back()] { serve(own); });
    }
    for (const bench::Descriptor& socket : sockets) shutdown(socket.get(), SHUT_RDWR);
    for (std::thread& thread : threads) thread.join();
  }

  void serve(const bench::Descriptor& socket) {
    std::array<char, 4096> chunk{};
    std::string input;
    for (;;) {
      const auto got = bench::read_some(socket, chunk.data(), chunk.size());
      if (!got) return;
      input.append(chunk.data(), got.value());
      // A command is an array of strings, as some answers are.
      RespValue command;
      for (;;) {
        const auto length = parse_reply(input, command);
        if (!length || length.value() == 0) break;
        input.erase(0, length.value());
        const auto bytes = answer(command);
        if (!bytes) {
          shutdown(socket.get(), SHUT_RDWR);
          return;
        }
        if (!bench::write_all(socket, *bytes)) return;
      }
    }
  }

  std::optional<std::string> answer(const RespValue& command) {
    Words words;
    for (const RespValue& item : command.items) words.push_back(item.text);
    const std::lock_guard lock(mutex_);
    sent_.push_back(words);
    return answer_(words);
  }

  static constexpr std::size_t kConnectionsMax = 256;

  const Answer answer_;
  bench::Descriptor listener_;
  std::string address_;
  mutable std::mutex mutex_;
  std::vector<Words> sent_;
  std::thread thread_;
};

}  // namespace leasehold::client
