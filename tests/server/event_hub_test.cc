// Which reader a change wakes, and that each reader gets each change exactly once.
#include <leasehold/base/random.h>
#include <leasehold/server/front/event_hub.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using Numbers = std::vector<std::uint64_t>;

kv::Revision revision(std::uint64_t number, const std::vector<std::string>& keys,
                      kv::EventKind kind = kv::EventKind::set) {
  kv::Revision out;
  out.number = number;
  for (const std::string& key : keys) {
    kv::Event event;
    event.key = key;
    event.kind = kind;
    out.events.push_back(event);
  }
  return out;
}

class EventHubTest : public ::testing::Test {
 protected:
  struct Client {
    EventReader reader;
    int woken = 0;
    bool lost = false;
    Numbers seen;
  };

  EventHubTest() { begin(kv::EventHistory::Limits()); }
  void begin(kv::EventHistory::Limits limits) {
    history_ = std::make_unique<kv::EventHistory>(limits);
    hub_ = std::make_unique<EventHub>(*history_);
  }
  void add(const std::vector<std::string>& keys, kv::EventKind kind = kv::EventKind::set) {
    history_->stage(revision(history_->head() + 1, keys, kind));
    history_->publish();
  }
  void look() {
    while (hub_->look()) {
    }
  }
  std::unique_ptr<Client> client(const std::vector<std::string>& keys,
                                 const std::vector<std::string>& prefixes, std::uint64_t from) {
    auto made = std::make_unique<Client>();
    for (const std::string& key : keys) made->reader.interest.filter.add_key(key);
    for (const std::string& prefix : prefixes) made->reader.interest.filter.add_prefix(prefix);
    made->reader.next = from;
    made->reader.wake = [client = made.get()] { ++client->woken; };
    hub_->add(made->reader);
    return made;
  }
  /// As a session does, all that it is given, at most `count`.
  void take(Client& client, std::size_t count = 1000) {
    while (count > 0 && !client.reader.current) {
      const auto batch = hub_->read(client.reader, count);
      if (batch.lost) {
        client.lost = true;
        return hub_->took(client.reader, hub_->cursor());
      }
      if (batch.revisions.empty()) return;
      for (const kv::Revision& next : batch.revisions) {
        for (const kv::Event& event : next.events) {
          if (!client.reader.interest.filter.wants(event.key)) continue;
          client.seen.push_back(next.number);
          break;
        }
        hub_->took(client.reader, next.number + 1);
        --count;
      }
    }
  }

  std::unique_ptr<kv::EventHistory> history_;
  std::unique_ptr<EventHub> hub_;
};

TEST_F(EventHubTest, WakesTheReadersThatWantIt) {
  const auto key = client({"a"}, {}, 1);
  const auto prefix = client({}, {"a/", "b/"}, 1);
  const auto all = client({}, {""}, 1);
  add({"a"});
  look();
  EXPECT_EQ(key->woken + 10 * prefix->woken + 100 * all->woken, 101);
  add({"a/1"});
  add({"b/1"});
  add({"b"});
  look();
  for (Client* one : {key.get(), prefix.get(), all.get()}) take(*one);
  EXPECT_EQ(key->seen, (Numbers{1}));
  EXPECT_EQ(prefix->seen, (Numbers{2, 3}));
  EXPECT_EQ(all->seen, (Numbers{1, 2, 3, 4}));
  // Once for all that it had not taken.
  EXPECT_EQ(all->woken, 1);
}

TEST_F(EventHubTest, WakesByTheNamesOfWhatHappened) {
  auto one = std::make_unique<Client>();
  one->reader.interest.names = {"expired"};
  one->reader.next = 1;
  one->reader.wake = [&] { ++one->woken; };
  hub_->add(one->reader);
  add({"a"});
  add({"a"}, kv::EventKind::deleted);
  add({"a"}, kv::EventKind::revoked);
  look();
  EXPECT_EQ(one->woken, 0);
  add({"a"}, kv::EventKind::expired);
  look();
  EXPECT_EQ(one->woken, 1);
  EXPECT_EQ(one->reader.next, 4U);
}

TEST_F(EventHubTest, APastThatIsKnownIsRead) {
  for (int i = 0; i < 5; ++i) add({"a"});
  const auto late = client({"a"}, {}, 3);
  EXPECT_FALSE(late->reader.current);
  take(*late);
  EXPECT_EQ(late->seen, (Numbers{3, 4, 5}));
  const auto next = client({"a"}, {}, 6);
  EXPECT_TRUE(next->reader.current);
}

TEST_F(EventHubTest, NothingBelowTheBeginningIsTold) {
  const auto early = client({"a"}, {}, 1);
  add({"a"});
  add({"a"});
  // The hub has not looked yet: its cursor is behind.
  const auto late = client({"a"}, {}, 3);
  look();
  EXPECT_EQ(late->woken, 0);
  add({"a"});
  look();
  take(*late);
  EXPECT_EQ(late->seen, (Numbers{3}));
}

TEST_F(EventHubTest, AReaderThatMovesToAnotherThreadGoesOn) {
  const auto one = client({"a"}, {}, 1);
  EventHub other(*history_);
  EventReader busy;
  busy.interest.filter.add_prefix("");
  busy.wake = [] {};
  busy.next = 1;
  other.add(busy);
  add({"a"});
  add({"b"});
  add({"a"});
  look();
  take(*one, 1);
  hub_->remove(one->reader);
  add({"a"});
  // The other thread has not looked at anything yet, or at all.
  while (other.look()) {
  }
  other.add(one->reader);
  hub_.reset();
  add({"a"});
  while (other.look()) {
  }
  for (; !one->reader.current;) {
    const auto batch = other.read(one->reader, 1);
    if (batch.revisions.at(0).events.at(0).key == "a") {
      one->seen.push_back(batch.revisions.at(0).number);
    }
    other.took(one->reader, one->reader.next + 1);
  }
  EXPECT_EQ(one->seen, (Numbers{1, 3, 4, 5}));
}

TEST_F(EventHubTest, ACurrentReaderContinuesWhereTheHubIs) {
  const auto one = client({"a"}, {}, 1);
  add({"b"});
  look();
  hub_->remove(one->reader);
  EXPECT_EQ(one->reader.next, 2U);
}

// The store was emptied, and has another state.
TEST_F(EventHubTest, AHistoryThatBeginsAgainIsLostForAllReaders) {
  const auto slow = client({"a"}, {}, 1);
  const auto current = client({"a"}, {}, 1);
  const auto indifferent = client({"b"}, {}, 1);
  for (int i = 0; i < 9; ++i) add({"a"});
  look();
  take(*slow, 5);
  take(*current);
  history_->restart(2);
  EXPECT_TRUE(hub_->read(slow->reader, 1).lost);
  history_->restart(5);
  EXPECT_TRUE(hub_->read(slow->reader, 1).revisions.empty()) << "as if it had none yet";
  history_->restart(2);
  look();
  for (Client* one : {slow.get(), current.get(), indifferent.get()}) {
    take(*one);
    EXPECT_TRUE(one->lost);
  }
  add({"a"});
  look();
  current->seen.clear();
  take(*current);
  EXPECT_EQ(current->seen, (Numbers{3}));
}

TEST_F(EventHubTest, AReaderSlowerThanTheHistoryFindsOut) {
  kv::EventHistory::Limits limits;
  limits.events_max = 4;
  begin(limits);
  const auto slow = client({"a"}, {}, 1);
  for (int i = 0; i < 3; ++i) add({"a"});
  look();
  take(*slow, 1);
  for (int i = 0; i < 3; ++i) add({"a"});
  look();
  take(*slow);
  EXPECT_TRUE(slow->lost);
  add({"a"});
  look();
  take(*slow);
  EXPECT_EQ(slow->seen, (Numbers{1, 7}));
}

TEST_F(EventHubTest, AHubThatIsSlowerThanTheHistoryTellsEveryReader) {
  kv::EventHistory::Limits limits;
  limits.events_max = 4;
  begin(limits);
  const auto one = client({"a"}, {}, 1);
  const auto other = client({"b"}, {}, 1);
  for (int i = 0; i < 9; ++i) add({"a"});
  look();
  take(*one);
  take(*other);
  EXPECT_TRUE(one->lost && other->lost);
  add({"b"});
  look();
  take(*other);
  EXPECT_EQ(other->seen, (Numbers{10}));
}

TEST_F(EventHubTest, AnotherStateIsALossForEveryReader) {
  const auto one = client({"a"}, {}, 1);
  add({"a"});
  look();
  take(*one);
  history_->restart(9);
  look();
  EXPECT_EQ(one->woken, 2);
  take(*one);
  EXPECT_TRUE(one->lost);
  add({"a"});
  look();
  take(*one);
  EXPECT_EQ(one->seen, (Numbers{1, 10}));
}

TEST_F(EventHubTest, IsNoticedOnceUntilItLooks) {
  EXPECT_FALSE(hub_->notice());  // there are no readers
  const auto one = client({"a"}, {}, 1);
  EXPECT_TRUE(hub_->notice());
  EXPECT_FALSE(hub_->notice());
  look();
  EXPECT_TRUE(hub_->notice());
  look();
  hub_->remove(one->reader);
  EXPECT_FALSE(hub_->notice());
}

/// Against the shortest way: everything that it wants, once, in order.
TEST_F(EventHubTest, RandomReadersSeeEverythingOnce) {
  Random random(20261122);
  for (int round = 0; round < 50; ++round) {
    begin(kv::EventHistory::Limits());
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<std::uint64_t> from;
    std::vector<std::vector<std::string>> log(1);
    for (int step = 0; step < 400; ++step) {
      const auto key = [&] { return std::string(1, static_cast<char>('a' + random.below(4))); };
      switch (random.below(8)) {
        case 0:
          if (clients.size() < 6) {
            from.push_back(1 + random.below(log.size()));
            clients.push_back(random.chance(1, 2) ? client({key()}, {}, from.back())
                                                  : client({}, {key()}, from.back()));
          }
          break;
        case 1: hub_->look(); break;
        case 2:
          if (!clients.empty()) take(*clients[random.below(clients.size())], random.below(4));
          break;
        case 3:
          if (!clients.empty()) {
            Client& moved = *clients[random.below(clients.size())];
            hub_->remove(moved.reader);
            hub_->add(moved.reader);
          }
          break;
        default: log.push_back({key() + key(), key()}); add(log.back());
      }
    }
    look();
    for (std::size_t i = 0; i < clients.size(); ++i) {
      take(*clients[i]);
      Numbers expected;
      for (std::uint64_t number = from[i]; number < log.size(); ++number) {
        for (const std::string& key : log[number]) {
          if (!clients[i]->reader.interest.filter.wants(key)) continue;
          expected.push_back(number);
          break;
        }
      }
      EXPECT_EQ(clients[i]->seen, expected);
    }
  }
}

TEST(EventName, IsThatOfRedis) {
  const auto name = [](kv::EventKind kind, kv::EventCause cause, std::uint64_t lease = 0) {
    kv::Event event;
    event.kind = kind;
    event.cause = cause;
    event.lease = grant::LeaseId(lease);
    return std::string(event_name(event));
  };
  using Kind = kv::EventKind;
  using Cause = kv::EventCause;
  EXPECT_EQ(name(Kind::set, Cause::none), "set");
  EXPECT_EQ(name(Kind::set, Cause::incr_by), "incrby");
  EXPECT_EQ(name(Kind::set, Cause::incr_by_float), "incrbyfloat");
  EXPECT_EQ(name(Kind::set, Cause::copy), "copy_to");
  EXPECT_EQ(name(Kind::set, Cause::set_bit), "setbit");
  EXPECT_EQ(name(Kind::set, Cause::append), "append");
  EXPECT_EQ(name(Kind::set, Cause::set_range), "setrange");
  EXPECT_EQ(name(Kind::set, Cause::rename), "rename_to");
  EXPECT_EQ(name(Kind::deleted, Cause::rename), "rename_from");
  EXPECT_EQ(name(Kind::set, Cause::attach_key, 7), "attach");
  EXPECT_EQ(name(Kind::set, Cause::attach_key), "detach");
  EXPECT_EQ(name(Kind::set, Cause::expire_key, 7), "expire");
  EXPECT_EQ(name(Kind::deleted, Cause::expire_key), "del");
  EXPECT_EQ(name(Kind::set, Cause::persist), "persist");
  EXPECT_EQ(name(Kind::deleted, Cause::none), "del");
  EXPECT_EQ(name(Kind::expired, Cause::none, 7), "expired");
  EXPECT_EQ(name(Kind::revoked, Cause::none, 7), "del");
}

}  // namespace
}  // namespace leasehold::server
