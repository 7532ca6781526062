// A session of a server of two groups while a slot moves from the first one to the second.
#pragma once

#include <leasehold/kv/command.h>
#include <leasehold/tests/server/groups_fixture.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace leasehold::server {

inline constexpr std::uint32_t kBar = 5061;   ///< of "bar"
inline constexpr std::uint32_t kFoo = 12182;  ///< of "foo"

class SessionSlots : public SessionGroups {
 protected:
  SessionSlots() {
    send({"SET", "bar", "v"});
    node_.commit_all();
    EXPECT_EQ(pump(), "+OK\r\n");
    node_.grant_lease(std::chrono::hours(1));
    second_.grant_lease(std::chrono::hours(1));
  }
  /// Applies it at once, as what comes from another node.
  static void apply(FakeNode& node, const kv::Command& command) {
    auto encoded = kv::encode_command(command);
    ASSERT_TRUE(encoded) << encoded.error().message;
    node.propose(encoded.value(), std::chrono::seconds(1), [](const replica::ProposeResult&) {});
    node.commit_all();
  }
  /// In front of what is proposed already.
  static void apply_before(FakeNode& node, const kv::Command& command) {
    auto encoded = kv::encode_command(command);
    ASSERT_TRUE(encoded) << encoded.error().message;
    node.commit_first(encoded.value());
    node.commit_all();
  }
  void begin() {
    apply(node_, kv::BeginMove{1, 2, 2, {kBar}});
    move_ = node_.store().slots().list()->at(kBar).move;
    apply(second_, kv::ExpectSlots{2, 2, 1, move_, {{kBar, 1}}});
    kv::MovedKey moved;
    moved.key = "bar";
    moved.exists = true;
    moved.value = "v";
    moved.create_revision = moved.mod_revision = moved.version = 1;
    apply(second_, kv::ImportKeys{1, move_, {moved}});
  }
  void freeze() { apply(node_, kv::FreezeMove{move_}); }
  void take() { apply(second_, kv::TakeSlots{1, move_, node_.store().revision()}); }
  void leave() { apply(node_, kv::LeaveSlots{move_}); }

  std::uint64_t move_ = 0;
};

}  // namespace leasehold::server
