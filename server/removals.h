// What it means for a node of many groups that it was removed from one of them.
#pragma once

#include <leasehold/base/result.h>

#include <cstddef>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

namespace leasehold::server {

/// Any thread.
class Removals {
 public:
  explicit Removals(std::size_t groups) : groups_(groups) {}

  /// This node was removed from the group of that number, with that error. Returns why the process
  /// has to end; none: it serves the other groups.
  std::optional<Error> note(std::size_t number, Error error) {
    const std::lock_guard lock(mutex_);
    removed_.insert(number);
    // It goes on as one that waits, except without users.
    if (number > 1 && removed_.count(1) == 0) return std::nullopt;
    if (removed_.size() >= groups_) return error;
    if (number > 1) return std::nullopt;
    // Nothing would change the users here any more: who is locked out later would be let in.
    error.message +=
        "; group 1 has the users, so this node serves no other group either: remove it from those "
        "too (leasehold member remove)";
    return error;
  }
  /// It is a member of the group again, as another replica.
  void added(std::size_t number) {
    const std::lock_guard lock(mutex_);
    removed_.erase(number);
  }

  bool of_all() const {
    const std::lock_guard lock(mutex_);
    return removed_.size() >= groups_;
  }

 private:
  const std::size_t groups_;
  mutable std::mutex mutex_;
  std::set<std::size_t> removed_;
};

}  // namespace leasehold::server
