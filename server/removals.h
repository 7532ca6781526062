// What it means for a node of many groups that it was removed from one of them.
#pragma once

#include <leasehold/base/result.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>

namespace leasehold::server {

/// Any thread.
class Removals {
 public:
  explicit Removals(std::size_t groups) : groups_(groups) {}

  /// This node was removed from the group of that number, with that error. Returns why the process
  /// has to end; none: it serves the other groups.
  std::optional<Error> note(std::size_t number, Error error) {
    const bool all = removed_.fetch_add(1) + 1 >= groups_;
    if (all) return error;
    if (number > 1) return std::nullopt;
    // Nothing would change the users here any more: who is locked out later would be let in.
    error.message +=
        "; group 1 has the users, so this node serves no other group either: remove it from those "
        "too (leasehold member remove)";
    return error;
  }

  bool of_all() const { return removed_.load() >= groups_; }

 private:
  const std::size_t groups_;
  std::atomic<std::size_t> removed_{0};
};

}  // namespace leasehold::server
