// Faults of directories, addresses, certificates and other nodes.
#include <leasehold/tests/doctor/doctor_fixture.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace leasehold::doctor {
namespace {

using ::testing::HasSubstr;

class DoctorPlaces : public DoctorTest {
 protected:
  AddressFacts& own() { return facts_.addresses.front(); }
  AddressFacts& add_peer(Reach reach, const std::string& problem) {
    AddressFacts& peer = facts_.addresses.emplace_back();
    peer.name = "--peers";
    peer.address = "10.0.0.2:7101";
    peer.peer = true;
    peer.node = raft::NodeId(2);
    peer.reach = reach;
    peer.problem = problem;
    return peer;
  }
  CertificateFacts& add_certificate(const char* name, std::int64_t days) {
    settings_.node.peer_security.dial = net::Protection::certificate;
    CertificateFacts& one = facts_.security.certificates.emplace_back();
    one.name = name;
    one.path = "/keys/x.pem";
    one.says = "leasehold://default/node/1/-";
    one.ends = "2030-01-01 00:00:00";
    one.days_left = days;
    return one;
  }
};

// The directory.

TEST_F(DoctorPlaces, ADirectoryOfAnotherNodeIsAnError) {
  facts_.folder.node = raft::NodeId(3);
  expect("error data-dir: /data/1 holds the log of node 3, and --id is 1", "--id 3, or");
}

TEST_F(DoctorPlaces, ADirectoryOfAnotherClusterIsAnError) {
  facts_.folder.cluster_id = 5;
  facts_.folder.cluster_expected = 6;
  expect("error data-dir: /data/1 belongs to another cluster", "--cluster and --peers");
  facts_.folder.cluster_expected.reset();
  EXPECT_EQ(wrong_things(), "");
}

TEST_F(DoctorPlaces, AnotherFormatNeedsAnotherBuildAndADamagedOneAWipe) {
  facts_.folder.mark_error = Error{ErrorCode::unsupported_format, "x: format 9"};
  expect("error data-dir: x: format 9", "start the build that wrote it");
  facts_.folder.mark_error = Error{ErrorCode::corrupted, "x: damaged"};
  expect("error data-dir: x: damaged", "wipe its directory");
}

TEST_F(DoctorPlaces, ADirectoryThatIsLockedIsTheRunningNodesOrAnError) {
  facts_.folder.locked_by = 77;
  expect("error data-dir: process 77 has locked /data/1", "ps -p 77");
  own().reach = Reach::taken;
  EXPECT_EQ(wrong_things(), "");
}

TEST_F(DoctorPlaces, RightsToTheDirectoryAreJudged) {
  facts_.folder.open_to_others = true;
  expect("warning data-dir", "chmod 700 /data/1");
  facts_.folder.of_another_user = true;
  expect("error data-dir", "chown");
  facts_.folder.problem = "cannot use /data/1: Permission denied";
  expect("error data-dir: cannot use", "choose another --data-dir");
}

// Addresses.

TEST_F(DoctorPlaces, APortThatIsTakenIsAnErrorUnlessThisNodeRuns) {
  own().reach = Reach::taken;
  expect("error ports: --listen 127.0.0.1:7201 is taken", "ss -ltnp 'sport = :7201'");
  facts_.folder.uuid = raft::Uuid{1, 2};
  add_server(1).uuid = "00000000000000010000000000000002";
  EXPECT_EQ(wrong_things(), "");
}

TEST_F(DoctorPlaces, AnAddressThatCannotBeBoundIsAnError) {
  own().reach = Reach::not_here;
  expect("error ports", "ip addr");
  own().reach = Reach::no_such_name;
  own().problem = "unknown";
  expect("error ports", "/etc/hosts");
  own().reach = Reach::other;
  expect("error ports", "1024");
}

TEST_F(DoctorPlaces, APeerThatDoesNotAnswerMayStartLaterButHasToResolve) {
  add_peer(Reach::refused, "refused");
  expect("warning peers: node 2 at 10.0.0.2:7101", "start that node");
  facts_.addresses.pop_back();
  add_peer(Reach::silent, "timed out");
  expect("warning peers", "firewall");
  facts_.addresses.pop_back();
  add_peer(Reach::no_such_name, "unknown");
  expect("error peers", "DNS");
}

TEST_F(DoctorPlaces, PlainPeersBeyondLoopbackAreAnErrorOrAWarning) {
  AddressFacts& peer = add_peer(Reach::fine, "");
  peer.own = true;
  expect("error peer-protection", "leasehold cert key");
  settings_.node.peer_security.plain_beyond_loopback = true;
  expect("warning peer-protection", "leasehold cert key");
  peer.loopback = true;
  EXPECT_EQ(wrong_things(), "");
}

// Certificates and keys.

TEST_F(DoctorPlaces, ACertificateIsJudgedByItsEnd) {
  CertificateFacts& one = add_certificate("--tls-cert", 30);
  EXPECT_EQ(wrong_things(), "");
  one.days_left = 29;
  expect("warning certificates", "leasehold cert node 1");
  one.days_left = -1;
  expect("error certificates: --tls-cert /keys/x.pem ended on", "leasehold cert node 1");
}

TEST_F(DoctorPlaces, AnAuthorityThatEndsNeedsAnotherOne) {
  add_certificate("--tls-ca", -1).says = "authority of default";
  expect("error certificates: --tls-ca", "leasehold cert init");
}

TEST_F(DoctorPlaces, ACertificateOfAnotherNodeOrClusterIsAnError) {
  CertificateFacts& one = add_certificate("--tls-cert", 300);
  one.says = "leasehold://default/node/2/-";
  expect("error certificates: /keys/x.pem is for node 2", "leasehold cert node 1");
  one.says = "leasehold://other/node/1/-";
  expect("error certificates: /keys/x.pem is for node 1 of cluster 'other'",
         "leasehold cert node 1");
  one.says = "leasehold://default/user/bob";
  expect("error certificates: /keys/x.pem names no node", "leasehold cert node 1");
}

TEST_F(DoctorPlaces, WhatServeWouldRefuseIsSaidOnceInItsWords) {
  settings_.node.peer_security.key_file = "/keys/k";
  settings_.node.peer_security.dial = net::Protection::key;
  facts_.security.peers = Error{ErrorCode::invalid_argument, "others may read /keys/k: chmod 600"};
  expect("error peer-key: others may read /keys/k: chmod 600", "leasehold cert key");
  add_certificate("--tls-cert", 300);
  facts_.security.peers = facts_.security.clients =
      Error{ErrorCode::invalid_argument, "not the key"};
  expect("error certificates: not the key", "leasehold cert node");
}

TEST_F(DoctorPlaces, ACertificateOfAnotherAuthorityIsAnError) {
  add_certificate("--tls-cert", 300);
  facts_.security.chain = Error{ErrorCode::invalid_argument, "x does not follow from y"};
  expect("error certificates: x does not follow from y", "--tls-ca");
}

// Other nodes.

TEST_F(DoctorPlaces, AServerThatDoesNotAnswerIsAnError) {
  ServerFacts silent;
  silent.server = "10.0.0.2:7201";
  silent.problem = "connection refused";
  facts_.servers[0] = silent;
  expect("error servers: 10.0.0.2:7201 does not answer: connection refused", "--servers");
}

TEST_F(DoctorPlaces, OtherVersionsAreWarnings) {
  facts_.servers[1].version = "9.8";
  expect("warning versions: node 3 at 10.0.0.3:7201 runs 9.8, and this program is 9.9", "upgrade");
}

TEST_F(DoctorPlaces, ANumberThatIsTakenIsAnError) {
  facts_.servers[1].node = raft::NodeId(2);
  expect("error servers: 10.0.0.2:7201 and 10.0.0.3:7201 are both node 2", "another --id");
  facts_.servers[1].node = raft::NodeId(1);
  expect("error servers: node 1 runs already at 10.0.0.3:7201", "another --id");
  facts_.folder.uuid = raft::Uuid{1, 2};
  facts_.servers[1].uuid = "00000000000000010000000000000002";
  EXPECT_EQ(wrong_things(), "");
}

TEST_F(DoctorPlaces, TwoMembersOnOneMachineAreAWarningUnlessTheyUseLoopback) {
  facts_.servers[0].machine = facts_.servers[1].machine;
  expect("warning machines: 2 nodes run on one machine", "a machine of its own");
  facts_.servers[0].server = "127.0.0.1:7201";
  EXPECT_EQ(wrong_things(), "");
}

TEST_F(DoctorPlaces, AMemberThatSaysThatItIsSickIsAnError) {
  facts_.servers[0].node_problem = "its state differs";
  expect("error servers: node 2 at 10.0.0.2:7201: its state differs", "leasehold status");
}

TEST_F(DoctorPlaces, WithoutServersTheClocksAreNotCompared) {
  facts_.servers.clear();
  expect("skipped clock-drift: no running node was named", "");
}

}  // namespace
}  // namespace leasehold::doctor
