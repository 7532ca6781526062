// A session of a server of two groups.
#pragma once

#include <leasehold/kv/slots.h>
#include <leasehold/tests/server/session_fixture.h>

#include <memory>
#include <string>
#include <vector>

namespace leasehold::server {

/// "bar" is of slot 5061 and so of the first group, "foo" of 12182 and of the second.
class SessionGroups : public SessionTest {
 protected:
  SessionGroups() { session_ = made_session(); }
  ~SessionGroups() override { session_.reset(); }

  std::shared_ptr<Session> made_session() {
    return std::make_shared<Session>(
        Session::Context{both_, state_, &state_.counters[0], &executor_, &executor_, &both_hubs_},
        7, "127.0.0.1:5", [this] { ++progress_; });
  }

  /// The reply of a command before which the node has to see what has moved to the first group.
  std::string send_and_see(const std::vector<std::string>& words) {
    EXPECT_EQ(send(words), "");
    node_.end_read(node_.granted(raft::ReadBasis::lease));
    return pump();
  }

  FakeNode second_{kv::kIdsOfGroup};
  ServedGroups both_{{ServedGroup{node_, node_.store(), node_.health()},
                      ServedGroup{second_, second_.store(), second_.health()}}};
  EventHubs both_hubs_{both_};
};

}  // namespace leasehold::server
