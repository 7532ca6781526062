// In which segments the log of a group stands, and what has to stay of each segment.
#pragma once

#include <leasehold/raft/types.h>
#include <leasehold/storage/segment_record.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace leasehold::storage {

/// What each segment holds of the logs. One that holds nothing may go, once it is the first.
class Holders {
 public:
  /// Something stands there, of this size.
  void add(std::uint64_t segment, std::uint64_t bytes);
  void remove(std::uint64_t segment, std::uint64_t bytes);
  /// A part of it has gone, or has come.
  void resize(std::uint64_t segment, std::uint64_t before, std::uint64_t after);
  bool any(std::uint64_t segment) const { return held_.count(segment) != 0; }
  std::uint64_t bytes_in(std::uint64_t segment) const;
  /// Of all segments.
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Held {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
  };
  /// Invariant: of what each holds, the number is above zero.
  std::map<std::uint64_t, Held> held_;
  std::uint64_t bytes_ = 0;
};

/// Entries that follow one another and stand in one segment.
struct Part {
  std::uint64_t segment = 0;
  raft::Index first;
  raft::Index last;
  std::uint64_t bytes = 0;  ///< about, once a part of it has gone
  friend bool operator==(const Part&, const Part&) = default;
};

/// Of one group. What it refers to is counted in the Holders that each call gets.
class GroupIndex {
 public:
  /// Ascending by index, without gaps.
  const std::vector<Part>& parts() const { return parts_; }
  /// The newest that was written.
  const StateRecord& state() const { return state_; }
  /// The segment of the newest section; 0: none.
  std::uint64_t state_segment() const { return state_segment_; }
  /// The segment in which the newest foundation stands; 0: none.
  std::uint64_t foundation_segment() const { return foundation_segment_; }
  /// Everything up to it was cut off.
  raft::Index base() const { return base_; }
  /// The number of the part that holds `index`, or of the first one above it.
  std::size_t find(raft::Index index) const;

  void set_state(const StateRecord& state, std::uint64_t segment, Holders& holders);
  void set_foundation(std::uint64_t segment, Holders& holders);
  /// An entry was appended to the log.
  void add(raft::Index index, std::uint64_t bytes, std::uint64_t segment, Holders& holders);
  /// Entries of the log were copied to another segment.
  void move(raft::Index first, raft::Index last, std::uint64_t segment, Holders& holders);
  /// `from` and everything above it was truncated.
  void truncate(raft::Index from, Holders& holders);
  /// Everything up to `base` is gone.
  void cut(raft::Index base, Holders& holders);
  /// No entry belongs to the log any more.
  void clear(Holders& holders);
  /// The group is gone.
  void remove(Holders& holders);

 private:
  static void refer(std::uint64_t& to, std::uint64_t segment, Holders& holders);
  void join(Holders& holders);
  static void shrink(Part& part, raft::Index first, raft::Index last, Holders& holders);

  std::vector<Part> parts_;
  StateRecord state_;
  std::uint64_t state_segment_ = 0;
  std::uint64_t foundation_segment_ = 0;
  raft::Index base_;
};

}  // namespace leasehold::storage
