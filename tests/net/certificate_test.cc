// Peers prove who they are by certificates.
#include <leasehold/tests/base/temporary_folder.h>
#include <leasehold/tests/net/tcp_rig.h>
#include <leasehold/tls/certificates.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

namespace leasehold::net {
namespace {

using raft::NodeId;
using ::testing::HasSubstr;
using tls::CertificateName;
using tls::NodeName;
using tls::UserName;

class Certified : public ::testing::Test {
 protected:
  void SetUp() override {
    make_authority("ca", "test");
    make_authority("other", "test");
  }
  void make_authority(const std::string& name, const std::string& cluster) {
    const auto made = tls::make_authority(folder_.path(name), cluster, false);
    ASSERT_TRUE(made.ok()) << made.error().message;
  }
  /// A guard with a certificate of its own, made by `authority`; it trusts "ca".
  GuardPtr certified(const CertificateName& name, const std::string& authority = "ca",
                     int days = 1) {
    const std::string stem = "made-" + std::to_string(++made_);
    const auto made = tls::make_certificate(folder_.path(authority), name, {"127.0.0.1"}, days,
                                            folder_.path(authority), stem, false);
    EXPECT_TRUE(made.ok()) << made.error().message;
    PeerSecurity security;
    security.dial = Protection::certificate;
    security.certificate_file = newest_ = made.value().certificate;
    security.certificate_key_file = made.value().key;
    security.authority_file = folder_.path("ca") + "/ca.pem";
    security.revoked_file = folder_.path("ca") + "/crl.pem";
    return load(security);
  }
  static GuardPtr load(const PeerSecurity& security) {
    auto guard = PeerGuard::load(security);
    EXPECT_TRUE(guard.ok()) << guard.error().message;
    return guard.value();
  }
  static NodeName node(std::uint64_t id, std::string uuid = "-") {
    return {"test", id, std::move(uuid)};
  }
  TestNode& start(std::uint64_t id, GuardPtr guard) {
    TcpOptions options = TcpRig::options(id);
    options.cluster = "test";
    options.guard = std::move(guard);
    return rig.start(std::move(options));
  }
  bool talk(TestNode& a, TestNode& b) {
    rig.introduce_all();
    return rig.run_until([&] {
      return a.transport->connected(b.options.id) && b.transport->connected(a.options.id);
    });
  }
  /// Node 1, which is as it should be, and this one talk to each other in no direction.
  void expect_stranger(GuardPtr guard) {
    TestNode& good = start(1, certified(node(1)));
    TestNode& bad = start(2, std::move(guard));
    rig.introduce_all();
    EXPECT_TRUE(rig.run_until([&] { return good.rejected(RejectReason::unproved) >= 2; }));
    EXPECT_FALSE(good.transport->connected(NodeId(2)));
    EXPECT_TRUE(good.peers_up.empty());
    EXPECT_EQ(good.transport->counters().accepts, 0U);
    EXPECT_TRUE(bad.peers_up.empty());
  }

  TemporaryFolder folder_;
  TcpRig rig;
  std::string newest_;  ///< certificate
  int made_ = 0;
};

TEST_F(Certified, NodesOfOneAuthorityTalk) {
  TestNode& one = start(1, certified(node(1, uuid_text(TcpRig::options(1).uuid))));
  TestNode& two = start(2, certified(node(2)));
  ASSERT_TRUE(talk(one, two));
  one.transport->send(NodeId(2), with_payload(9, std::size_t{1} << 20U));
  EXPECT_TRUE(rig.run_until([&] { return two.received.size() == 1; }));
}

TEST_F(Certified, AnotherAuthorityIsRefused) {
  expect_stranger(certified(node(2), "other"));
}
TEST_F(Certified, AnExpiredOneIsRefused) {
  expect_stranger(certified(node(2), "ca", -1));
}
TEST_F(Certified, AnotherNodesIsRefused) {
  expect_stranger(certified(node(3)));
}
TEST_F(Certified, OneForAnotherDirectoryIsRefused) {
  expect_stranger(certified(node(2, std::string(31, '0') + "1")));
}
TEST_F(Certified, OneOfAnotherClusterIsRefused) {
  expect_stranger(certified(NodeName{"test2", 2, "-"}));
}
TEST_F(Certified, AUsersIsRefused) {
  expect_stranger(certified(UserName{"test", "2"}));
}
TEST_F(Certified, ARevokedOneIsRefused) {
  const GuardPtr guard = certified(node(2));
  ASSERT_TRUE(tls::revoke_certificate(folder_.path("ca"), newest_).ok());
  expect_stranger(guard);
}
TEST_F(Certified, AKeyIsNoCertificate) {
  PeerSecurity security;
  security.dial = Protection::key;
  security.key_file = folder_.path("key");
  ASSERT_TRUE(tls::make_group_key(security.key_file, false).ok());
  expect_stranger(load(security));
}

TEST_F(Certified, AConnectionEndsWhenItsCertificateIsRevoked) {
  const GuardPtr first = certified(node(1));
  TestNode& one = start(1, first);
  TestNode& two = start(2, certified(node(2)));
  ASSERT_TRUE(talk(one, two));
  one.transport->set_guard(load(first->security()));
  EXPECT_EQ(one.transport->counters().disconnects, 0U);
  ASSERT_TRUE(tls::revoke_certificate(folder_.path("ca"), newest_).ok());
  one.transport->set_guard(load(first->security()));
  EXPECT_TRUE(rig.run_until([&] { return one.rejected(RejectReason::unproved) >= 2; }));
  EXPECT_FALSE(one.transport->connected(NodeId(2)));
  // A new certificate lets it in again.
  two.transport->set_guard(certified(node(2)));
  EXPECT_TRUE(talk(one, two));
}

TEST_F(Certified, ANewCertificateIsSeenOnBothConnections) {
  TestNode& one = start(1, certified(node(1)));
  TestNode& two = start(2, certified(node(2)));
  ASSERT_TRUE(talk(one, two));
  one.transport->set_guard(certified(node(1)));
  const std::string proof = "tls " + tls::read_certificate(newest_).value().serial;
  EXPECT_TRUE(rig.run_until([&] {
    const PeerProofs seen = two.transport->proofs(NodeId(1));
    return seen.to == proof && seen.from == proof;
  }));
  // And then there is an end to it.
  rig.poll();
  const std::uint64_t connects = one.transport->counters().connects;
  rig.poll();
  EXPECT_EQ(one.transport->counters().connects, connects);
}

TEST_F(Certified, AnAuthorityIsReplacedInThreeSteps) {
  const auto joined = [this](const std::string& name, std::initializer_list<const char*> parts) {
    std::ofstream out(folder_.path(name));
    for (const char* part : parts) out << std::ifstream(folder_.path(part)).rdbuf();
    return folder_.path(name);
  };
  // Both have the same name, and a list each: that of the other one has to be told apart.
  ASSERT_TRUE(tls::revoke_certificate(folder_.path("other"),
                                      [this] {
                                        certified(node(9), "other");
                                        return newest_;
                                      }())
                  .ok());
  const std::string authorities = joined("authorities", {"ca/ca.pem", "other/ca.pem"});
  const std::string lists = joined("lists", {"ca/crl.pem", "other/crl.pem"});
  std::vector<PeerSecurity> old;
  std::vector<PeerSecurity> fresh;
  for (std::uint64_t id = 1; id <= 2; ++id) {
    old.push_back(certified(node(id))->security());
    fresh.push_back(certified(node(id), "other")->security());
  }
  TestNode& one = start(1, load(old[0]));
  TestNode& two = start(2, load(old[1]));
  ASSERT_TRUE(talk(one, two));
  const auto step = [&](std::vector<PeerSecurity>& securities, const std::string& authority,
                        const std::string& list) {
    for (PeerSecurity& security : securities) {
      security.authority_file = authority;
      security.revoked_file = list;
    }
    one.transport->set_guard(load(securities[0]));
    ASSERT_TRUE(talk(one, two));
    two.transport->set_guard(load(securities[1]));
    ASSERT_TRUE(talk(one, two));
  };
  step(old, authorities, lists);
  step(fresh, authorities, lists);
  ASSERT_TRUE(rig.run_until([&] {
    const std::string proof = "tls " + tls::read_certificate(newest_).value().serial;
    const PeerProofs seen = one.transport->proofs(NodeId(2));
    return seen.to == proof && seen.from == proof;
  }));
  step(fresh, folder_.path("other") + "/ca.pem", folder_.path("other") + "/crl.pem");
  EXPECT_EQ(one.rejected(RejectReason::unproved) + two.rejected(RejectReason::unproved), 0U);
}

TEST_F(Certified, AGroupMovesFromAKeyToCertificates) {
  const std::string key = folder_.path("key");
  ASSERT_TRUE(tls::make_group_key(key, false).ok());
  std::vector<PeerSecurity> accept_both;
  for (std::uint64_t id = 1; id <= 2; ++id) {
    PeerSecurity security = certified(node(id))->security();
    security.key_file = key;
    security.dial = Protection::key;
    security.accept_certificate = true;
    accept_both.push_back(security);
  }
  TestNode& one = start(1, load(accept_both[0]));
  TestNode& two = start(2, load(accept_both[1]));
  ASSERT_TRUE(talk(one, two));
  for (PeerSecurity& security : accept_both) {
    security.dial = Protection::certificate;
    security.accept_key = true;
  }
  one.transport->set_guard(load(accept_both[0]));
  ASSERT_TRUE(talk(one, two));
  two.transport->set_guard(load(accept_both[1]));
  ASSERT_TRUE(talk(one, two));
  for (PeerSecurity& security : accept_both) security.accept_key = false;
  one.transport->set_guard(load(accept_both[0]));
  two.transport->set_guard(load(accept_both[1]));
  ASSERT_TRUE(talk(one, two));
  EXPECT_EQ(one.rejected(RejectReason::unproved) + two.rejected(RejectReason::unproved), 0U);
}

TEST_F(Certified, FilesThatDoNotFitAreNamed) {
  PeerSecurity security = certified(node(1))->security();
  const auto problem = [](const PeerSecurity& wrong) {
    const auto guard = PeerGuard::load(wrong);
    return guard.ok() ? std::string() : guard.error().message;
  };
  PeerSecurity wrong = security;
  wrong.certificate_key_file = folder_.path("ca") + "/ca-key.pem";
  EXPECT_THAT(problem(wrong), HasSubstr("ca-key.pem"));
  wrong = security;
  wrong.certificate_file = folder_.path("nothing");
  EXPECT_THAT(problem(wrong), HasSubstr("nothing"));
  wrong = security;
  wrong.revoked_file = security.certificate_file;
  EXPECT_THAT(problem(wrong), HasSubstr("revoked"));
  wrong = security;
  wrong.authority_file.clear();
  EXPECT_THAT(problem(wrong), HasSubstr("authority"));
}

}  // namespace
}  // namespace leasehold::net
