// Which groups of a process may ask for votes now.
#pragma once

#include <leasehold/lease/clock.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

namespace leasehold::raft {

/// After a start, or when a node is lost that led thousands of groups, all of them would ask for
/// votes at once. Then no answer comes before the next election timeout, and the more often all ask
/// again, the less is heard. So only so many elect at a time, and the next one begins when one has
/// its leader, with a lease.
///
/// For progress only: no promise and no lease rests on this. A group that gets no answers does not
/// hold up the others: its place is free again after a while. It stands in a line of its own then,
/// which comes second and gets a quarter of the places.
///
/// Passive and deterministic. By one thread.
class ElectionLine {
 public:
  /// Of a group, behind each of its turns.
  enum class State : std::uint8_t {
    quiet,   ///< a follower, or a leader that commits
    waits,   ///< it wants to ask for votes, and found no place
    elects,  ///< it asks for votes, or has been elected
  };

  /// `places`: how many groups elect at a time, at least 1. `patience`: how long one holds a place.
  ElectionLine(std::size_t places, Duration patience);

  /// The group asks for votes now. False: there is no place.
  bool take_place(GroupId group, PromiseInstant now);
  void note(GroupId group, State state);
  void remove(GroupId group);
  /// Frees the places that have been held for too long. Moves out the groups that may ask now, in
  /// the order in which they came to stand in line: each has a place until it is noted again.
  std::vector<GroupId> admit(PromiseInstant now);
  /// When admit() can do something, if nothing is noted.
  PromiseInstant next_deadline() const;

 private:
  enum class Seat : std::uint8_t {
    in_line,
    in_line_again,  ///< in the line of those that had a place in vain
    held,           ///< in held_
    spent,          ///< it has elected for longer than its place was its own
  };
  struct Place {
    PromiseInstant until;
    bool again = false;  ///< it had one in vain before
  };

  bool has_room(bool again) const;
  bool had_one(GroupId group) const;
  void hold(GroupId group, bool again, PromiseInstant now);
  void give_up(GroupId group);
  void admit_from(std::deque<GroupId>& line, bool again, PromiseInstant now,
                  std::vector<GroupId>& admitted);

  std::size_t places_;
  Duration patience_;
  /// Of all groups that are not quiet.
  std::map<GroupId, Seat> seats_;
  /// They may name groups that have left the line since.
  std::deque<GroupId> line_;
  std::deque<GroupId> line_again_;
  /// Invariant: at most places_.
  std::map<GroupId, Place> held_;
  /// Of held_. Invariant: at most a quarter of places_, or one.
  std::size_t held_again_ = 0;
  /// By these instants; may name places that have become free since.
  std::deque<std::pair<PromiseInstant, GroupId>> ends_;
};

}  // namespace leasehold::raft
