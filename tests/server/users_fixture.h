// A session of a node with users.
#pragma once

#include <leasehold/tests/server/session_fixture.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::server {

class SessionUsersTest : public SessionTest {
 protected:
  SessionUsersTest() {
    state_.accounts.queue.run_at_once();
    node_.grant_lease(std::chrono::seconds(1000));
    node_.apply_all();
  }

  std::string acl(std::vector<std::string> words) {
    words.insert(words.begin(), "ACL");
    return write(words);
  }
  /// Makes a user without a password, and becomes it.
  void be(const std::vector<std::string>& rules) {
    std::vector<std::string> words = {"SETUSER", "ann", "on", "nopass"};
    words.insert(words.end(), rules.begin(), rules.end());
    ASSERT_EQ(acl(words), "+OK\r\n");
    ASSERT_EQ(send({"AUTH", "ann", ""}), "+OK\r\n");
  }
  /// Changes a user as another connection would.
  void change(const std::vector<std::string>& rules, const std::string& user = "ann") {
    auto mine = std::move(session_);
    auto input = std::move(input_);
    open();
    std::vector<std::string> words = {"SETUSER", user};
    words.insert(words.end(), rules.begin(), rules.end());
    EXPECT_EQ(acl(words), "+OK\r\n");
    session_ = std::move(mine);
    input_ = std::move(input);
  }
  /// Writes a user's record as another node would.
  void write_user(const std::string& name, const std::string& rules) {
    const auto* const found = node_.store().users().find(name);
    auto command =
        kv::encode_command(kv::SetUser{name, found == nullptr ? 0 : found->version, rules});
    ASSERT_TRUE(command);
    node_.propose(std::move(command).value(), node::CallOptions(std::chrono::seconds(1)),
                  [](const replica::ProposeResult&) {});
    node_.commit_one();
  }
};

}  // namespace leasehold::server
