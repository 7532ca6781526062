// A group without nodes, for tests of what moves slots between groups.
#pragma once

#include <leasehold/kv/local/slot_move.h>
#include <leasehold/tests/kv/store_support.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::kv::testing {

/// A group in memory that executes at once, unless `before` says otherwise. Any thread.
class QuickGroup final : public LedGroup {
 public:
  enum class Fate { executed, refused, unanswered, late };

  Result<Reply> execute(const Command& command) override {
    const Bytes bytes = encoded(command);
    const Fate fate = before ? before(command) : Fate::executed;
    if (fate == Fate::refused) return Error{ErrorCode::unavailable, "refused"};
    if (fate == Fate::late) {
      late.push_back(bytes);
      return Error{ErrorCode::timed_out, "late"};
    }
    const Bytes reply = apply_one(bytes);
    if (fate == Fate::unanswered) return Error{ErrorCode::timed_out, "unanswered"};
    return decode_reply(reply);
  }
  Result<void> catch_up() override { return {}; }
  const Store& store() const override { return store_; }
  Result<std::optional<lease::Duration>> time_left(grant::LeaseId id) override {
    const auto found = store_.find_lease(id, "");
    if (!found) return found.error();
    if (!found.value()) return std::optional<lease::Duration>();
    return std::optional(found.value()->lease.ttl);
  }

  bool leads() const override { return !leading || leading(); }

  Bytes apply_one(const Bytes& bytes) {
    const std::lock_guard lock(mutex_);
    const raft::Index index(store_.applied_index().value() + 1);
    return store_.apply({{{raft::Term(1), index}, bytes.view()}}, index).at(0);
  }
  std::string run(const Command& command) { return text(apply_one(encoded(command))); }
  /// As a replica that was far behind: it knows no changes of before.
  void install_snapshot() {
    const auto snapshot = store_.take_snapshot();
    ASSERT_TRUE(snapshot && store_.install_snapshot(*snapshot.value()));
  }
  void execute_late(std::size_t which) {
    const Bytes bytes = std::move(late[which]);
    late.erase(late.begin() + static_cast<std::ptrdiff_t>(which));
    apply_one(bytes);
  }

  /// Set it before other threads use the group.
  std::function<Fate(const Command&)> before;
  std::function<bool()> leading;
  std::vector<Bytes> late;  ///< of one thread

 private:
  std::mutex mutex_;  ///< held while a command is applied
  MemoryStore store_;
};

}  // namespace leasehold::kv::testing
