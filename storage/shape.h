// Which entries a log has.
#pragma once

#include <leasehold/raft/log.h>
#include <leasehold/raft/types.h>

#include <optional>
#include <utility>
#include <vector>

namespace leasehold::storage {

/// The end of a log, and the terms below it.
class Shape {
 public:
  Shape() = default;
  Shape(raft::LogId base, std::vector<raft::TermRun> runs, raft::LogId last)
      : base_(base), runs_(std::move(runs)), last_(last) {}

  raft::LogId base() const { return base_; }
  raft::LogId last() const { return last_; }
  const std::vector<raft::TermRun>& runs() const { return runs_; }
  /// None: below the base, or above the last entry.
  std::optional<raft::Term> term_at(raft::Index index) const;

  /// Removes `from` and everything above it. Asserts that it is above the base and at most one
  /// above the last entry.
  void truncate(raft::Index from);
  /// Asserts that the entry follows from the last one.
  void append(raft::LogId id);
  /// Removes everything up to `to`, which becomes the base. Asserts that it stands in the log.
  void cut(raft::LogId to);

 private:
  raft::LogId base_;
  std::vector<raft::TermRun> runs_;
  raft::LogId last_;
};

}  // namespace leasehold::storage
