// A client port over real sockets, for tests, with a fake node behind it.
#pragma once

#include <leasehold/client/resp_client.h>
#include <leasehold/kv/command.h>
#include <leasehold/server/commands/command_table.h>
#include <leasehold/server/front/resp.h>
#include <leasehold/server/front/session.h>
#include <leasehold/server/front/tcp_front.h>
#include <leasehold/tests/server/fake_node.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::server {
using client::RespClient;
using client::RespValue;

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

inline constexpr milliseconds kPatience{20000};

/// A front on a free port, and a thread that completes what the node is asked.
class TcpFrontTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  void open(ServerOptions options = {}) { open_over(node_.store(), std::move(options)); }
  void open_with(std::unique_ptr<const kv::Store> store) {
    store_ = std::move(store);
    open_over(*store_, {});
  }
  void open_over(const kv::Store& store, ServerOptions options) {
    options.io_threads = GetParam();
    state_ = std::make_unique<ServerState>(options, command_table());
    auto front = TcpFront::open("127.0.0.1:0", node_, store, *state_);
    ASSERT_TRUE(front.ok()) << front.error().message;
    front_ = std::move(front).value();
    worker_ = std::thread([this] {
      while (!stopping_) {
        if (!node_.complete_some()) std::this_thread::yield();
      }
    });
  }
  void TearDown() override {
    if (front_) front_->stop_accepting();
    stopping_ = true;
    if (worker_.joinable()) worker_.join();
    front_.reset();
  }

  RespClient connect() {
    auto client = RespClient::connect("127.0.0.1:" + std::to_string(front_->port()), kPatience);
    LEASEHOLD_ASSERT(client.ok());
    return std::move(client).value();
  }
  static RespValue call(RespClient& client, const Words& words) {
    auto reply = client.call(words, kPatience);
    LEASEHOLD_ASSERT(reply.ok());
    return std::move(reply).value();
  }

  FakeNode node_;
  std::unique_ptr<const kv::Store> store_;  ///< the test's own, if it has one; outlives the front
  std::unique_ptr<ServerState> state_;
  std::unique_ptr<TcpFront> front_;
  std::thread worker_;
  std::atomic<bool> stopping_{false};
};

}  // namespace leasehold::server
