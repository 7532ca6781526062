#include <leasehold/base/assert.h>
#include <leasehold/raft/election_line.h>

#include <algorithm>

namespace leasehold::raft {

ElectionLine::ElectionLine(std::size_t places, Duration patience)
    : places_(places), patience_(patience) {
  LEASEHOLD_ASSERT(places_ > 0 && patience_.count() > 0);
}

bool ElectionLine::has_room(bool again) const {
  if (held_.size() >= places_) return false;
  return !again || held_again_ < std::max<std::size_t>(places_ / 4, 1);
}

bool ElectionLine::take_place(GroupId group, PromiseInstant now) {
  if (held_.count(group) != 0) return true;
  const bool again = had_one(group);
  if (!has_room(again)) return false;
  hold(group, again, now);
  return true;
}

bool ElectionLine::had_one(GroupId group) const {
  const auto seat = seats_.find(group);
  if (seat == seats_.end()) return false;
  return seat->second == Seat::spent || seat->second == Seat::in_line_again;
}

void ElectionLine::hold(GroupId group, bool again, PromiseInstant now) {
  LEASEHOLD_ASSERT(has_room(again) && held_.count(group) == 0);
  seats_[group] = Seat::held;
  held_[group] = {now + patience_, again};
  if (again) ++held_again_;
  ends_.emplace_back(now + patience_, group);
}

void ElectionLine::give_up(GroupId group) {
  const auto held = held_.find(group);
  if (held == held_.end()) return;
  if (held->second.again) --held_again_;
  held_.erase(held);
}

void ElectionLine::remove(GroupId group) {
  seats_.erase(group);
  give_up(group);
}

void ElectionLine::note(GroupId group, State state) {
  if (state == State::quiet) return remove(group);
  const auto seat = seats_.find(group);
  const bool stands = seat != seats_.end() &&
                      (seat->second == Seat::in_line || seat->second == Seat::in_line_again);
  if (state == State::elects) {
    // A leader that goes has asked it to: that needs no place.
    if (stands) seats_.erase(seat);
    return;
  }
  if (stands) return;
  const bool again = had_one(group);
  give_up(group);
  seats_[group] = again ? Seat::in_line_again : Seat::in_line;
  (again ? line_again_ : line_).push_back(group);
}

void ElectionLine::admit_from(std::deque<GroupId>& line, bool again, PromiseInstant now,
                              std::vector<GroupId>& admitted) {
  const Seat stands = again ? Seat::in_line_again : Seat::in_line;
  while (!line.empty() && has_room(again)) {
    const GroupId group = line.front();
    line.pop_front();
    const auto seat = seats_.find(group);
    if (seat == seats_.end() || seat->second != stands) continue;  // it has left
    hold(group, again, now);
    admitted.push_back(group);
  }
}

std::vector<GroupId> ElectionLine::admit(PromiseInstant now) {
  while (!ends_.empty()) {
    const auto [until, group] = ends_.front();
    const auto held = held_.find(group);
    const bool stale = held == held_.end() || held->second.until != until;
    if (!stale && until > now) break;
    ends_.pop_front();
    if (stale) continue;
    give_up(group);
    seats_[group] = Seat::spent;
  }
  std::vector<GroupId> admitted;
  admit_from(line_, false, now, admitted);
  admit_from(line_again_, true, now, admitted);
  return admitted;
}

// One that is not the oldest any more is looked at too early, which does no harm.
PromiseInstant ElectionLine::next_deadline() const {
  if (line_.empty() && line_again_.empty()) return PromiseInstant::never();
  const bool room = (!line_.empty() && has_room(false)) || (!line_again_.empty() && has_room(true));
  if (room) return PromiseInstant::earliest();
  LEASEHOLD_ASSERT(!ends_.empty());
  return ends_.front().first;
}

}  // namespace leasehold::raft
