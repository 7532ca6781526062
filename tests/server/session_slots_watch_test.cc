// Clients that watch and subscribe while a slot moves from one group to another.
#include <leasehold/tests/server/slots_fixture.h>

#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <utility>

namespace leasehold::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(SessionSlots, AWatcherReadsAgainWhereItsKeysHaveGone) {
  EXPECT_THAT(send({"LEASEHOLD", "WATCH", "KEY", "bar"}), HasSubstr("watching"));
  begin();
  EXPECT_EQ(pump(), "") << "they are here still";
  freeze();
  take();
  EXPECT_TRUE(session_->wants_progress(coarse_now()));
  EXPECT_THAT(pump(), HasSubstr("resync"));
  EXPECT_FALSE(session_->wants_progress(coarse_now()));
  apply(second_, kv::Set{"bar", "w"});
  while (both_hubs_.of(1).look()) {
  }
  EXPECT_THAT(pump(), AllOf(HasSubstr("events"), HasSubstr("bar")));
  leave();
  EXPECT_EQ(pump(), "") << "that is no news";
}

// There the thread has looked at everything already, for another watcher.
TEST_F(SessionSlots, AWatcherReadsAgainWhereAnotherOneWatches) {
  EXPECT_THAT(send({"LEASEHOLD", "WATCH", "KEY", "foo"}), HasSubstr("watching"));
  const auto other = std::exchange(session_, made_session());
  EXPECT_THAT(send({"LEASEHOLD", "WATCH", "KEY", "bar"}), HasSubstr("watching"));
  begin();
  freeze();
  take();
  while (both_hubs_.of(1).look()) {
  }
  EXPECT_THAT(pump(), HasSubstr("resync"));
  apply(second_, kv::Set{"bar", "w"});
  while (both_hubs_.of(1).look()) {
  }
  EXPECT_THAT(pump(), AllOf(HasSubstr("events"), HasSubstr("bar")));
}

// The second group's revisions are above those of the first one: it has changes of that number, and
// those of the key are not among them.
TEST_F(SessionSlots, AWatcherThatComesLateReadsAgain) {
  for (int i = 0; i < 9; ++i) apply(second_, kv::Set{"foo", "v"});
  begin();
  apply(node_, kv::Set{"bar", "a change that the watcher has not seen"});
  freeze();
  take();
  EXPECT_THAT(send({"LEASEHOLD", "WATCH", "KEY", "bar", "FROM", "2"}), HasSubstr("resync"));
  EXPECT_EQ(send({"LEASEHOLD", "UNWATCH"}), "+OK\r\n");
  const std::string next = std::to_string(second_.store().events().head() + 1);
  EXPECT_THAT(send({"LEASEHOLD", "WATCH", "KEY", "bar", "FROM", next}), HasSubstr("watching"));
  EXPECT_EQ(send({"LEASEHOLD", "UNWATCH"}), "+OK\r\n");
  EXPECT_THAT(send({"LEASEHOLD", "WATCH", "KEY", "foo", "FROM", "2"}), HasSubstr("watching"))
      << "it has been here all the time";
}

TEST_F(SessionSlots, AWatcherReadsAgainWhatHasBeenAway) {
  EXPECT_THAT(send({"LEASEHOLD", "WATCH", "KEY", "bar"}), HasSubstr("watching"));
  begin();
  freeze();
  take();
  leave();
  apply(node_, kv::DropKeys{2, move_, {"bar"}});
  apply(node_, kv::ForgetSlots{2, move_});
  for (int i = 0; i < 9; ++i) apply(node_, kv::Set{"{x}", "v"});
  apply(second_, kv::Set{"bar", "w"});
  apply(second_, kv::BeginMove{2, 2, 1, {kBar}});
  const std::uint64_t back = second_.store().slots().list()->at(kBar).move;
  apply(node_, kv::ExpectSlots{1, 2, 2, back, {{kBar, 2}}});
  apply(second_, kv::FreezeMove{back});
  apply(node_, kv::TakeSlots{2, back, 1});
  EXPECT_TRUE(session_->wants_progress(coarse_now()));
  EXPECT_THAT(pump(), HasSubstr("resync"));
}

TEST_F(SessionSlots, ASubscriberHearsItsKeysWhereTheyHaveGone) {
  // Else the second group's revisions would leap, which breaks the connections of its subscribers.
  for (int i = 0; i < 9; ++i) apply(second_, kv::Set{"foo", "v"});
  EXPECT_THAT(send({"SUBSCRIBE", "__keyspace@0__:bar"}), HasSubstr("subscribe"));
  begin();
  freeze();
  take();
  EXPECT_TRUE(session_->wants_progress(coarse_now()));
  EXPECT_EQ(pump(), "");
  apply(second_, kv::Set{"bar", "w"});
  while (both_hubs_.of(1).look()) {
  }
  EXPECT_THAT(pump(), HasSubstr("__keyspace@0__:bar"));
}

}  // namespace
}  // namespace leasehold::server
