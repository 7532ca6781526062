// What an end of TLS that does not behave can do: messages without bytes, halves of records,
// sessions and keys that it may not use.
#include <leasehold/tests/tls/openssl_end.h>
#include <leasehold/tests/tls/test_certificates.h>
#include <leasehold/tls/context.h>
#include <leasehold/tls/stream.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold::tls {
namespace {

using State = Stream::State;
using ::testing::HasSubstr;

struct Sockets {
  Sockets() {
    LEASEHOLD_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0);
  }
  ~Sockets() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;
  std::array<int, 2> ends{-1, -1};
};

ContextPtr made(Result<ContextPtr> result) {
  EXPECT_TRUE(result.ok()) << result.error().message;
  return std::move(result).value();
}

/// A stream that has accepted an end which does what the test wants.
struct Visit {
  explicit Visit(const ContextPtr& context, bool of_peers = false, SharedKey key = {})
      : end(sockets.ends[0], of_peers, std::move(key)),
        server(context, Stream::Side::accepted, sockets.ends[1]) {
    for (int i = 0; i < 20 && (state == State::wants_read || state == State::wants_write); ++i) {
      end.handshake();
      state = server.handshake().state;
    }
    end.handshake();
  }
  State read() {
    std::array<char, 64> bytes{};
    return server.read(bytes.data(), bytes.size()).state;
  }

  Sockets sockets;
  OpensslEnd end;
  Stream server;
  State state = State::wants_read;
};

class TlsSessionTest : public ::testing::Test {
 protected:
  ContextPtr serves() {
    return made(Context::serve_clients(authority_.files(server_), ClientCertificates::none));
  }

  TestAuthority authority_;
  TestAuthority::Certificate server_ = authority_.certify("server", "DNS:localhost");
};

TEST_F(TlsSessionTest, MessagesWithoutBytesEndTheConnection) {
  Visit visit(serves());
  ASSERT_EQ(visit.state, State::done);
  int sent = 0;
  State state = State::wants_read;
  while (state == State::wants_read && sent < 1000) {
    ASSERT_TRUE(visit.end.update_key());
    ++sent;
    state = visit.read();
  }
  EXPECT_EQ(state, State::failed);
  EXPECT_LE(sent, 64);
  EXPECT_GE(sent, 30);
  EXPECT_EQ(visit.server.fault(), Stream::Fault::protocol);
  EXPECT_THAT(visit.server.problem(), HasSubstr("messages of TLS"));
  EXPECT_EQ(visit.read(), State::failed);
}

TEST_F(TlsSessionTest, OneReadEndsWhateverWaits) {
  Visit visit(serves());
  ASSERT_EQ(visit.state, State::done);
  // As many as the socket takes.
  int sent = 0;
  while (sent < 3000 && visit.end.update_key()) ++sent;
  ASSERT_GT(sent, 70);
  EXPECT_EQ(visit.read(), State::failed);
}

TEST_F(TlsSessionTest, BetweenBytesKeysAreUpdated) {
  Visit visit(serves());
  ASSERT_EQ(visit.state, State::done);
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(visit.end.update_key());
    // Of either side.
    if (i % 2 == 0) {
      ASSERT_TRUE(visit.end.write("x"));
      ASSERT_EQ(visit.read(), State::done);
    } else {
      EXPECT_EQ(visit.read(), State::wants_read);
      ASSERT_EQ(visit.server.write("y").state, State::done);
      std::array<char, 64> bytes{};
      ASSERT_GT(SSL_read(visit.end.native(), bytes.data(), bytes.size()), 0);
    }
  }
}

TEST_F(TlsSessionTest, APartOfARecordIsNotPending) {
  Visit visit(serves());
  ASSERT_EQ(visit.state, State::done);
  ASSERT_TRUE(visit.end.write("first"));
  // The beginning of a record, behind a whole one.
  const std::string part("\x17\x03\x03\x00\x40 and no more", 17);
  ASSERT_EQ(::send(visit.sockets.ends[0], part.data(), part.size(), 0), 17);
  EXPECT_EQ(visit.read(), State::done);
  EXPECT_EQ(visit.read(), State::wants_read);
  EXPECT_FALSE(visit.server.has_pending()) << "who reads while it is would never wait";
}

/// Certificates are judged for another instant than now.
void judge_for(const ContextPtr& context, std::chrono::system_clock::time_point instant) {
  X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(context->native()),
                             std::chrono::system_clock::to_time_t(instant));
}

/// Two streams, and what became of their handshake.
struct Pair {
  Pair(const ContextPtr& client_context, const ContextPtr& server_context, SessionSlot* slot)
      : client(client_context, Stream::Side::dialled, sockets.ends[0], slot),
        server(server_context, Stream::Side::accepted, sockets.ends[1]) {
    for (int i = 0; i < 20; ++i) {
      at_client = client.handshake().state;
      at_server = server.handshake().state;
    }
    // The ticket comes behind the handshake.
    char none = 0;
    if (at_client == State::done) client.read(&none, 1);
  }
  bool done() const { return at_client == State::done && at_server == State::done; }

  Sockets sockets;
  Stream client;
  Stream server;
  State at_client = State::wants_read;
  State at_server = State::wants_read;
};

TEST_F(TlsSessionTest, AContinuedSessionEndsWithTheClientsCertificate) {
  using std::chrono::hours;
  const auto now = std::chrono::system_clock::now();
  const auto own = authority_.certify("client", "URI:leasehold://test/user/alice", 10);
  const ContextPtr client =
      made(Context::be_client({own.certificate, own.key, authority_.certificate(), ""}));
  const ContextPtr server =
      made(Context::serve_clients(authority_.files(server_), ClientCertificates::required));
  SessionSlot slot;
  ASSERT_TRUE(Pair(client, server, &slot).done());
  // A chain of continued sessions has the end of the first.
  for (int i = 0; i < 3; ++i) {
    judge_for(server, now + hours(24 * 9 + i));
    Pair later(client, server, &slot);
    ASSERT_TRUE(later.done());
    EXPECT_TRUE(later.server.resumed());
    EXPECT_TRUE(later.server.peer_name().has_value());
  }
  judge_for(server, now + hours(24 * 11));
  Pair late(client, server, &slot);
  EXPECT_EQ(late.at_server, State::failed);
  EXPECT_EQ(late.server.fault(), Stream::Fault::certificate);
  EXPECT_THAT(late.server.problem(), HasSubstr("expired"));
}

TEST_F(TlsSessionTest, AContinuedSessionEndsWithTheServersCertificate) {
  using std::chrono::hours;
  const auto now = std::chrono::system_clock::now();
  server_ = authority_.certify("short", "DNS:localhost", 10);
  const ContextPtr client = made(Context::be_client({"", "", authority_.certificate(), ""}));
  const ContextPtr server = serves();
  SessionSlot slot;
  ASSERT_TRUE(Pair(client, server, &slot).done());
  for (int i = 0; i < 2; ++i) {
    judge_for(client, now + hours(24 * 9));
    Pair later(client, server, &slot);
    ASSERT_TRUE(later.done());
    EXPECT_TRUE(later.client.resumed());
  }
  judge_for(client, now + hours(24 * 11));
  Pair late(client, server, &slot);
  EXPECT_EQ(late.at_client, State::failed);
  EXPECT_THAT(late.client.problem(), HasSubstr("expired"));
}

TEST_F(TlsSessionTest, AContinuedSessionEndsWithTheListOfRevokedCertificates) {
  using std::chrono::hours;
  const auto now = std::chrono::system_clock::now();
  authority_.certify("other", "");
  const std::string list = authority_.revoke("other");  // good for 30 days
  const TestAuthority::Certificate own = authority_.certify("client", "", 300);
  const ContextPtr client =
      made(Context::be_client({own.certificate, own.key, authority_.certificate(), ""}));
  const ContextPtr server =
      made(Context::serve_clients(authority_.files(server_, list), ClientCertificates::required));
  SessionSlot slot;
  ASSERT_TRUE(Pair(client, server, &slot).done());
  judge_for(server, now + hours(24 * 31));
  Pair late(client, server, &slot);
  EXPECT_EQ(late.at_server, State::failed);
  EXPECT_THAT(late.server.problem(), HasSubstr("CRL has expired"));
}

class SharedKeyTest : public ::testing::Test {
 protected:
  static GroupKey key(char digit) {
    auto parsed = GroupKey::parse(std::string(64, digit));
    EXPECT_TRUE(parsed.ok());
    return parsed.value();
  }
  static std::string bytes_of(const GroupKey& key) {
    return {reinterpret_cast<const char*>(key.bytes().data()), key.bytes().size()};
  }
  /// Whether the accepting side believes it; then it has proved the key.
  static bool believed(const ContextPtr& accepts, const SharedKey& shown) {
    const Visit visit(accepts, true, shown);
    EXPECT_EQ(visit.server.established(), !visit.server.peer_key().empty());
    return visit.server.established();
  }

  const GroupKey own_ = key('a');
  const ContextPtr accepts_ = made(Context::accept_peers(nullptr, {own_}));
};

TEST_F(SharedKeyTest, TheIdentityIsTheOneNameOfTheKey) {
  const std::string name = "leasehold/" + own_.name();
  EXPECT_TRUE(believed(accepts_, {name, bytes_of(own_)}));
  std::string upper = name;
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  std::string changed = name;
  changed.back() = changed.back() == '0' ? '1' : '0';
  for (const std::string& other :
       {name + "0", name + std::string(1, '\0'), name.substr(0, name.size() - 1), own_.name(),
        upper, changed, std::string("leasehold/"), std::string("x"), " " + name,
        name + std::string(60000, 'a')}) {
    EXPECT_FALSE(believed(accepts_, {other, bytes_of(own_)})) << other.substr(0, 100);
  }
}

TEST_F(SharedKeyTest, TheNameWithoutTheKeyProvesNothing) {
  const std::string name = "leasehold/" + own_.name();
  EXPECT_FALSE(believed(accepts_, {name, bytes_of(key('b'))}));
  std::string near = bytes_of(own_);
  near.back() = static_cast<char>(near.back() ^ 1);
  EXPECT_FALSE(believed(accepts_, {name, near}));
  EXPECT_FALSE(believed(accepts_, {name, near.substr(1)}));
  EXPECT_FALSE(believed(accepts_, {name, std::string(1, '\0')}));
  // With another digest the key is not for this.
  EXPECT_FALSE(believed(accepts_, {name, bytes_of(own_), "TLS_AES_256_GCM_SHA384"}));
}

TEST_F(SharedKeyTest, EachOfSeveralKeysHasItsName) {
  const GroupKey other = key('b');
  const ContextPtr both = made(Context::accept_peers(nullptr, {own_, other}));
  EXPECT_TRUE(believed(both, {"leasehold/" + own_.name(), bytes_of(own_)}));
  EXPECT_TRUE(believed(both, {"leasehold/" + other.name(), bytes_of(other)}));
  EXPECT_FALSE(believed(both, {"leasehold/" + own_.name(), bytes_of(other)}));
}

/// At the dialling side: nobody is believed who does not have the key.
TEST_F(SharedKeyTest, WhoAnswersHasToHaveTheKey) {
  const ContextPtr dials = made(Context::dial_peers(own_));
  EXPECT_TRUE(Pair(dials, accepts_, nullptr).done());
  TestAuthority authority;
  const auto node = authority.certify("node", "URI:leasehold://test/node/1/-");
  const CertificateFiles files = authority.files(node);
  for (const ContextPtr& other :
       {made(Context::accept_peers(nullptr, {key('b')})),
        made(Context::accept_peers(&files, {key('b')})), made(Context::accept_peers(&files, {}))}) {
    Pair pair(dials, other, nullptr);
    EXPECT_EQ(pair.at_client, State::failed);
    EXPECT_FALSE(pair.server.established());
    EXPECT_EQ(pair.client.peer_key(), "");
  }
}

}  // namespace
}  // namespace leasehold::tls
