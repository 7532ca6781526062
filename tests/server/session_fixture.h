// A session over a fake node, as a connection would drive it.
#pragma once

#include <leasehold/server/commands/command_table.h>
#include <leasehold/server/front/session.h>
#include <leasehold/tests/server/fake_node.h>
#include <leasehold/tests/server/manual_executor.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::server {

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() { open(); }

  void open() {
    session_ = std::make_shared<Session>(
        Session::Context{groups_, state_, &state_.counters[0], &executor_, &executor_, &hubs_}, 7,
        "127.0.0.1:5", [this] { ++progress_; });
    input_.clear();
  }

  /// Hands over bytes, as the connection would; returns what is ready to be sent.
  std::string feed(const std::string& bytes) {
    input_ += bytes;
    return pump();
  }
  std::string pump() {
    do {
      executor_.run();
      input_.erase(0, session_->process(input_));
    } while (session_->turn_over() || executor_.waits());
    return std::exchange(session_->output(), {});
  }
  /// Gives one command in one piece, as words.
  std::string send(const std::vector<std::string>& words) {
    std::string bytes;
    append_array(bytes, words.size());
    for (const std::string& word : words) append_bulk(bytes, word);
    return feed(bytes);
  }
  std::uint64_t count(Count Counters::*counter) const { return state_.sum(counter); }
  /// Sends a write and lets it commit.
  std::string write(const std::vector<std::string>& words) {
    EXPECT_EQ(send(words), "");
    node_.commit_all();
    return pump();
  }

  FakeNode node_;
  ServedGroups groups_{{ServedGroup{node_, node_.store(), node_.health()}}};
  EventHubs hubs_{groups_};
  EventHub& hub_ = hubs_.of(0);
  ManualExecutor executor_;
  ServerState state_{[] {
                       ServerOptions options;
                       options.config = {{"appendonly", "yes"}, {"save", ""}, {"maxclients", "10"}};
                       return options;
                     }(),
                     command_table()};
  std::shared_ptr<Session> session_;
  std::string input_;
  int progress_ = 0;
};

}  // namespace leasehold::server
