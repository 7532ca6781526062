// Two ends of TLS over a pair of sockets.
#include <leasehold/tests/tls/test_certificates.h>
#include <leasehold/tls/context.h>
#include <leasehold/tls/stream.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace leasehold::tls {
namespace {

using State = Stream::State;
using ::testing::HasSubstr;

/// Two sockets that do not block.
struct Sockets {
  Sockets() {
    LEASEHOLD_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0);
  }
  ~Sockets() {
    close_end(0);
    close_end(1);
  }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;
  void close_end(std::size_t at) {
    if (ends[at] >= 0) ::close(std::exchange(ends[at], -1));
  }
  std::array<int, 2> ends{-1, -1};
};

/// A client and a server, and what became of their handshake.
struct Pair {
  Pair(const ContextPtr& client_context, const ContextPtr& server_context,
       SessionSlot* slot = nullptr, const std::string& host = {})
      : client(client_context, Stream::Side::dialled, sockets.ends[0], slot),
        server(server_context, Stream::Side::accepted, sockets.ends[1]) {
    if (!host.empty()) client.expect_server(host);
    for (int i = 0; i < 20 && !(ended(at_client) && ended(at_server)); ++i) {
      if (!ended(at_client)) at_client = client.handshake().state;
      if (!ended(at_server)) at_server = server.handshake().state;
    }
  }
  static bool ended(State state) {
    return state != State::wants_read && state != State::wants_write;
  }
  bool done() const { return at_client == State::done && at_server == State::done; }

  /// What the client writes, as the server reads it.
  std::string pass(const std::string& text) {
    EXPECT_EQ(client.write(text).bytes, text.size());
    std::array<char, 1024> bytes{};
    const Stream::Step step = server.read(bytes.data(), bytes.size());
    return {bytes.data(), step.bytes};
  }

  Sockets sockets;
  Stream client;
  Stream server;
  State at_client = State::wants_read;
  State at_server = State::wants_read;
};

ContextPtr made(Result<ContextPtr> result) {
  EXPECT_TRUE(result.ok()) << result.error().message;
  return std::move(result).value();
}

class StreamTest : public ::testing::Test {
 protected:
  ContextPtr serves(ClientCertificates wish, const std::string& revoked = {}) {
    return made(Context::serve_clients(authority_.files(server_, revoked), wish));
  }
  ContextPtr trusts() { return made(Context::be_client({"", "", authority_.certificate(), ""})); }
  ContextPtr shows(const TestAuthority::Certificate& own) {
    return made(Context::be_client({own.certificate, own.key, authority_.certificate(), ""}));
  }

  TestAuthority authority_;
  TestAuthority::Certificate server_ =
      authority_.certify("server", "DNS:localhost,DNS:db.example,IP:127.0.0.1");
};

TEST_F(StreamTest, BytesGoThrough) {
  Pair pair(trusts(), serves(ClientCertificates::none));
  ASSERT_TRUE(pair.done());
  EXPECT_EQ(pair.pass("hello"), "hello");
  char none = 0;
  EXPECT_EQ(pair.server.read(&none, 1).state, State::wants_read);
  EXPECT_FALSE(pair.server.peer_name().has_value());
}

TEST_F(StreamTest, BytesThatWereReadAheadArePending) {
  Pair pair(trusts(), serves(ClientCertificates::none));
  ASSERT_TRUE(pair.done());
  ASSERT_EQ(pair.client.write("ab").bytes, 2U);
  char one = 0;
  ASSERT_EQ(pair.server.read(&one, 1).state, State::done);
  EXPECT_TRUE(pair.server.has_pending());
  ASSERT_EQ(pair.server.read(&one, 1).state, State::done);
  EXPECT_EQ(one, 'b');
  EXPECT_FALSE(pair.server.has_pending());
}

TEST_F(StreamTest, AFullSocketTakesTheRestLater) {
  Pair pair(trusts(), serves(ClientCertificates::none));
  ASSERT_TRUE(pair.done());
  const std::string sent(4U << 20U, 'x');
  std::string arrived(sent.size() + 1, '\0');
  std::size_t written = 0;
  std::size_t read = 0;
  bool waited = false;
  while (read < sent.size()) {
    while (written < sent.size()) {
      const Stream::Step step = pair.client.write(std::string_view(sent).substr(written));
      written += step.bytes;
      if (step.state == State::done) continue;
      ASSERT_EQ(step.state, State::wants_write);
      waited = true;
      break;
    }
    const Stream::Step step = pair.server.read(arrived.data() + read, arrived.size() - read);
    ASSERT_TRUE(step.state == State::done || step.state == State::wants_read);
    read += step.bytes;
  }
  arrived.resize(read);
  EXPECT_TRUE(waited);
  EXPECT_EQ(arrived, sent);
}

TEST_F(StreamTest, AServerIsKnownByItsNameOrItsAddress) {
  for (const char* host : {"localhost", "db.example", "127.0.0.1"}) {
    EXPECT_TRUE(Pair(trusts(), serves(ClientCertificates::none), nullptr, host).done()) << host;
  }
  for (const char* host : {"other.example", "127.0.0.2", "::1"}) {
    Pair pair(trusts(), serves(ClientCertificates::none), nullptr, host);
    EXPECT_EQ(pair.at_client, State::failed) << host;
    EXPECT_THAT(pair.client.problem(), HasSubstr(host));
  }
}

TEST_F(StreamTest, AServerOfAnotherAuthorityIsNotBelieved) {
  TestAuthority other;
  const auto own = other.certify("server", "DNS:localhost");
  Pair pair(trusts(), made(Context::serve_clients(other.files(own), ClientCertificates::none)));
  EXPECT_EQ(pair.at_client, State::failed);
  EXPECT_EQ(pair.client.fault(), Stream::Fault::certificate);
  EXPECT_EQ(pair.at_server, State::failed);
  EXPECT_EQ(pair.server.fault(), Stream::Fault::refused);
}

TEST_F(StreamTest, AClientCertificateIsOptionalOrRequired) {
  const auto own = authority_.certify("client", "");
  EXPECT_TRUE(Pair(trusts(), serves(ClientCertificates::optional)).done());
  EXPECT_TRUE(Pair(shows(own), serves(ClientCertificates::optional)).done());
  EXPECT_TRUE(Pair(shows(own), serves(ClientCertificates::required)).done());
  Pair without(trusts(), serves(ClientCertificates::required));
  EXPECT_EQ(without.at_server, State::failed);
  EXPECT_EQ(without.server.fault(), Stream::Fault::certificate);
}

TEST_F(StreamTest, OneThatIsShownHasToBeValid) {
  TestAuthority other;
  const auto alien = other.certify("client", "");
  Pair of_another(shows(alien), serves(ClientCertificates::optional));
  EXPECT_EQ(of_another.at_server, State::failed);
  EXPECT_EQ(of_another.server.fault(), Stream::Fault::certificate);

  const auto revoked = authority_.certify("revoked", "");
  const std::string list = authority_.revoke("revoked");
  EXPECT_TRUE(Pair(shows(revoked), serves(ClientCertificates::optional)).done());
  Pair without_rights(shows(revoked), serves(ClientCertificates::optional, list));
  EXPECT_EQ(without_rights.at_server, State::failed);
  EXPECT_THAT(without_rights.server.problem(), HasSubstr("revoked"));

  const auto ended = authority_.certify("ended", "", 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  Pair late(shows(ended), serves(ClientCertificates::optional));
  EXPECT_EQ(late.at_server, State::failed);
  EXPECT_THAT(late.server.problem(), HasSubstr("expired"));
}

TEST_F(StreamTest, WhatWasBelievedIsLookedAtAgain) {
  const auto own = authority_.certify("client", "");
  Pair pair(shows(own), serves(ClientCertificates::optional));
  ASSERT_TRUE(pair.done());
  EXPECT_TRUE(pair.server.believed_by(*serves(ClientCertificates::optional)));
  const std::string list = authority_.revoke("client");
  EXPECT_FALSE(pair.server.believed_by(*serves(ClientCertificates::optional, list)));
}

TEST_F(StreamTest, ASessionIsContinuedUntilTheContextChanges) {
  const ContextPtr client = trusts();
  ContextPtr server = serves(ClientCertificates::none);
  SessionSlot slot;
  for (const bool resumed : {false, true, true}) {
    Pair pair(client, server, &slot);
    ASSERT_TRUE(pair.done());
    EXPECT_EQ(pair.client.resumed(), resumed);
    EXPECT_EQ(pair.server.resumed(), resumed);
    // The ticket comes behind the handshake.
    char none = 0;
    EXPECT_EQ(pair.client.read(&none, 1).state, State::wants_read);
  }
  server = serves(ClientCertificates::none);
  Pair fresh(client, server, &slot);
  ASSERT_TRUE(fresh.done());
  EXPECT_FALSE(fresh.server.resumed());
}

TEST_F(StreamTest, GarbageEndsTheHandshake) {
  for (const std::string& text : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(200, '\x16'),
                                  std::string("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", 10)}) {
    Sockets sockets;
    Stream server(serves(ClientCertificates::none), Stream::Side::accepted, sockets.ends[1]);
    ASSERT_EQ(::send(sockets.ends[0], text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
    EXPECT_EQ(server.handshake().state, State::failed);
    EXPECT_EQ(server.fault(), Stream::Fault::protocol);
    EXPECT_EQ(server.handshake().state, State::failed);
  }
}

TEST_F(StreamTest, ATruncatedHandshakeEnds) {
  Sockets sockets;
  Stream server(serves(ClientCertificates::none), Stream::Side::accepted, sockets.ends[1]);
  const std::string half("\x16\x03\x01\x02\x00\x01", 6);
  ASSERT_EQ(::send(sockets.ends[0], half.data(), half.size(), 0), 6);
  EXPECT_EQ(server.handshake().state, State::wants_read);
  sockets.close_end(0);
  const State state = server.handshake().state;
  EXPECT_TRUE(state == State::ended || state == State::failed);
}

TEST_F(StreamTest, AForgedOrTruncatedRecordIsNotRead) {
  for (const bool truncated : {false, true}) {
    Pair pair(trusts(), serves(ClientCertificates::none));
    ASSERT_TRUE(pair.done());
    std::string record("\x17\x03\x03\x00\x20", 5);
    record += std::string(truncated ? 7 : 32, 'f');
    ASSERT_GT(::send(pair.sockets.ends[0], record.data(), record.size(), 0), 0);
    if (truncated) pair.sockets.close_end(0);
    char none = 0;
    const Stream::Step step = pair.server.read(&none, 1);
    EXPECT_EQ(step.bytes, 0U);
    EXPECT_TRUE(step.state == State::failed || (truncated && step.state == State::ended));
    EXPECT_NE(pair.server.write("x").state, State::done);
  }
}

TEST_F(StreamTest, AFarewellIsAnEnd) {
  Pair pair(trusts(), serves(ClientCertificates::none));
  ASSERT_TRUE(pair.done());
  pair.client.shut_down();
  char none = 0;
  EXPECT_EQ(pair.server.read(&none, 1).state, State::ended);
}

TEST_F(StreamTest, WrongFilesAreNamed) {
  const auto other = authority_.certify("other", "");
  const auto message = [&](const CertificateFiles& files) {
    const auto context = Context::serve_clients(files, ClientCertificates::optional);
    return context.ok() ? std::string() : context.error().message;
  };
  CertificateFiles files = authority_.files(server_);
  EXPECT_EQ(message(files), "");
  files.key = other.key;
  EXPECT_THAT(message(files), HasSubstr("other.key"));
  files = authority_.files(server_);
  files.authority = server_.key;
  EXPECT_THAT(message(files), HasSubstr("server.key"));
  files = authority_.files(server_);
  files.revoked = server_.certificate;
  EXPECT_THAT(message(files), HasSubstr("revoked"));
  files = authority_.files(server_);
  std::filesystem::permissions(server_.key, std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  EXPECT_THAT(message(files), HasSubstr("chmod 600"));
}

TEST_F(StreamTest, ACertificateNamesAUser) {
  const auto own = authority_.certify("alice", "URI:leasehold://test/user/alice");
  Pair pair(shows(own), serves(ClientCertificates::optional));
  ASSERT_TRUE(pair.done());
  EXPECT_EQ(pair.server.peer_name(), CertificateName(UserName{"test", "alice"}));
}

TEST_F(StreamTest, ANodeIsKnownUnderAnyAddressAndAUserIsNoServer) {
  server_ = authority_.certify("node", "URI:leasehold://test/node/1/-");
  EXPECT_TRUE(Pair(trusts(), serves(ClientCertificates::none), nullptr, "10.0.0.1").done());
  server_ = authority_.certify("user", "URI:leasehold://test/user/alice");
  Pair pair(trusts(), serves(ClientCertificates::none), nullptr, "10.0.0.1");
  EXPECT_EQ(pair.at_client, State::failed);
  EXPECT_EQ(pair.client.fault(), Stream::Fault::certificate);
}

}  // namespace
}  // namespace leasehold::tls
