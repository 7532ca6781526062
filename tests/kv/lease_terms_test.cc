// The terms of a lease other than its time to live, in both stores: lock delay, soft limit.
#include <leasehold/tests/kv/lease_support.h>

#include <gmock/gmock.h>

namespace leasehold::kv::testing {
namespace {

using grant::LeaseId;
using std::chrono::seconds;
using ::testing::HasSubstr;

class LeaseTermsContract : public LeaseContract {};

TEST_P(LeaseTermsContract, ALockDelayKeepsTheNameOfAnExpiredLease) {
  GrantLease grant{LeaseId(7), seconds(10), "n", "me"};
  grant.terms.delay = seconds(15);
  run(grant);
  run(leased("a", "1", 7));
  EXPECT_EQ(run(expire(1, {{7, 1}})), "1");
  EXPECT_EQ(ask(Exists{{"a"}}), "0") << "the keys are gone at once";
  EXPECT_EQ(list(*store_), "7 token 1 stamp 2 'n' of 'me': (delayed)");
  EXPECT_EQ(run(GrantLease{LeaseId(0), seconds(10), "n", "you"}),
            "error 13: lease 7 of 'me' has expired, and its lock delay of 15000 ms keeps the name "
            "from everybody; a revocation ends it");
  EXPECT_EQ(run(RenewLeases{{LeaseId(7)}}), "[nil,]");
  EXPECT_THAT(run(leased("a", "1", 7)), HasSubstr("never granted, or has ended"));
  EXPECT_EQ(run(AttachKey{LeaseId(7), "b"}), run(AttachKey{LeaseId(9), "b"}).replace(16, 1, "7"));
  EXPECT_EQ(ask(LeaseInfo{LeaseId(0), "n"}), "nil") << "nobody holds it";
  EXPECT_EQ(ask(LeaseInfo{LeaseId(7), ""}), "[7,1,10000,\"n\",\"me\",[],0,0,15000,1,0,]");
  EXPECT_EQ(run(expire(1, {{7, 1}})), "0");
  EXPECT_EQ(run(expire(1, {{7, 2}})), "1");
  EXPECT_EQ(list(*store_), "");
  EXPECT_THAT(run(GrantLease{LeaseId(0), seconds(10), "n", "you"}), HasSubstr("[4294967296,"));
}

TEST_P(LeaseTermsContract, TheTimerSeesWhichLeasesAreWanted) {
  const auto wants = [&] {
    std::string out;
    const LeaseChanges changes = store_->lease_changes(0).value();
    for (const TimedLease& lease : changes.alive) {
      out += std::to_string(lease.times.wants) + " ";
    }
    return out;
  };
  GrantLease soft{LeaseId(7), seconds(10), "n", "me"};
  soft.terms = {seconds(60), {}, true};
  run(soft);
  run(grant(8, "m"));
  run(grant(0, "n"));
  run(Transaction{{}, {GrantLease{LeaseId(0), seconds(1), "n", "me"}}});
  run(grant(0, "m"));
  EXPECT_EQ(wants(), "2 0 ") << "without a soft limit nothing is reported";
  run(RevokeLease{LeaseId(7)});
  run(soft);
  EXPECT_EQ(wants(), "0 0 ") << "that was another lease";
}

TEST_P(LeaseTermsContract, TermsThatMakeNoSenseAreErrors) {
  GrantLease grant{LeaseId(7), seconds(10), "", "me"};
  grant.terms.delay = seconds(1);
  EXPECT_EQ(run(grant), "error 3: a lock delay needs a name that it keeps");
  EXPECT_EQ(list(*store_), "");
}

TEST(RocksdbLeaseTerms, StandInTheRecordOfALease) {
  const TemporaryFolder folder;
  {
    const auto store = open_store(folder.path("kv"));
    GrantLease grant{LeaseId(7), seconds(10), "a", "me"};
    grant.terms = {seconds(3), {}, true};
    grant.asked_at_ms = 1'700'000'000'000;
    run(*store, grant);
    grant.id = LeaseId(8);
    grant.name = "b";
    grant.terms = {seconds(4), seconds(5), false};
    run(*store, grant);
    run(*store, expire(1, {{8, 2}}));
  }
  const auto again = open_store(folder.path("kv"));
  const auto ask = [&](std::uint64_t id) {
    return text(encode_reply(query(LeaseInfo{LeaseId(id), ""}, *again).value()));
  };
  EXPECT_EQ(ask(7), "[7,1,10000,\"a\",\"me\",[],3000,1,0,0,1700000000000,]");
  EXPECT_EQ(ask(8), "[8,2,10000,\"b\",\"me\",[],4000,0,5000,1,1700000000000,]");
  EXPECT_EQ(list(*again),
            "7 token 1 stamp 1 'a' of 'me':; 8 token 2 stamp 3 'b' of 'me': (delayed)");
}

INSTANTIATE_TEST_SUITE_P(Stores, LeaseTermsContract, each_store(), name_of_store);

}  // namespace
}  // namespace leasehold::kv::testing
