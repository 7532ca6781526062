// A front with a fake node behind it, plain and with TLS.
#pragma once

#include <leasehold/client/resp_client.h>
#include <leasehold/server/commands/command_table.h>
#include <leasehold/server/front/tcp_front.h>
#include <leasehold/tests/server/fake_node.h>
#include <leasehold/tests/tls/test_certificates.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::server {

inline constexpr std::chrono::milliseconds kFrontPatience{20000};

struct Kind {
  std::size_t io_threads;
  bool tls;
  bool busy = false;  ///< its threads look for more before they sleep
};
inline std::string kind_name(const ::testing::TestParamInfo<Kind>& info) {
  return std::string(info.param.busy ? "Busy" : "") + (info.param.tls ? "Tls" : "Plain") +
         std::to_string(info.param.io_threads);
}

/// A front on a free port, and a thread that completes what the node is asked.
class TcpFrontTest : public ::testing::TestWithParam<Kind> {
 protected:
  /// One for all tests: keys take time.
  static const tls::TestAuthority& authority() {
    static const auto made = [] {
      auto fresh = std::make_unique<tls::TestAuthority>();
      fresh->certify("server", "DNS:localhost,IP:127.0.0.1");
      return fresh;
    }();
    return *made;
  }
  static tls::ContextPtr context() {
    auto made = tls::Context::serve_clients(
        authority().files({authority().path("server.pem"), authority().path("server.key")}),
        tls::ClientCertificates::none);
    LEASEHOLD_ASSERT(made.ok());
    return std::move(made).value();
  }
  static bool tls() { return GetParam().tls; }
  void open(ServerOptions options = {}) { open_over(node_.store(), std::move(options)); }
  void open_with(std::unique_ptr<const kv::Store> store) {
    store_ = std::move(store);
    open_over(*store_, {});
  }
  void open_over(const kv::Store& store, ServerOptions options) {
    groups_ =
        std::make_unique<ServedGroups>(std::vector{ServedGroup{node_, store, node_.health()}});
    options.io_threads = GetParam().io_threads;
    options.busy_poll = std::chrono::milliseconds(GetParam().busy ? 1 : 0);
    options.client_tls = tls() ? ClientTls::Mode::on : ClientTls::Mode::off;
    state_ = std::make_unique<ServerState>(options, command_table(), tls() ? context() : nullptr);
    auto front = TcpFront::open("127.0.0.1:0", *groups_, *state_);
    ASSERT_TRUE(front.ok()) << front.error().message;
    front_ = std::move(front).value();
    worker_ = std::thread([this] {
      while (!stopping_) {
        node_.wait_for_calls();
        node_.complete_some();
      }
    });
  }
  void TearDown() override {
    if (front_) front_->stop_accepting();
    stopping_ = true;
    if (worker_.joinable()) worker_.join();
    front_.reset();
  }

  client::RespClient connect() {
    auto client = try_connect();
    LEASEHOLD_ASSERT(client.ok());
    return std::move(client).value();
  }
  Result<client::RespClient> try_connect() {
    client::Access access;
    if (tls()) {
      auto loaded = client::Access::by_tls({authority().certificate(), "", ""});
      LEASEHOLD_ASSERT(loaded.ok());
      access = std::move(loaded).value();
    }
    return client::RespClient::connect("127.0.0.1:" + std::to_string(front_->port()),
                                       kFrontPatience, access);
  }
  /// There are too many clients. One with TLS could not read why.
  void expect_refused() {
    auto client = try_connect();
    ASSERT_EQ(client.ok(), !tls());
    if (tls()) return;
    const auto reply = client.value().reply(kFrontPatience);
    ASSERT_TRUE(reply.ok());
    EXPECT_THAT(reply.value().text, ::testing::StartsWith("ERR max number of clients reached"));
  }
  static client::RespValue call(client::RespClient& client, const std::vector<std::string>& words) {
    auto reply = client.call(words, kFrontPatience);
    LEASEHOLD_ASSERT(reply.ok());
    return std::move(reply).value();
  }

  FakeNode node_;
  std::unique_ptr<const kv::Store> store_;  ///< the test's own, if it has one; outlives the front
  std::unique_ptr<ServedGroups> groups_;
  std::unique_ptr<ServerState> state_;
  std::unique_ptr<TcpFront> front_;
  std::thread worker_;
  std::atomic<bool> stopping_{false};
};

}  // namespace leasehold::server
