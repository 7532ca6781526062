#include <leasehold/base/assert.h>
#include <leasehold/raft/progress.h>

#include <algorithm>
#include <utility>

namespace leasehold::raft {
namespace {

void restart_at_match(Progress& progress, ProgressState state) {
  progress.state = state;
  progress.paused = false;
  progress.next_index = progress.match_index.next();
  progress.inflights.clear();
  progress.inflight_bytes = 0;
  progress.intent = 0;
  LEASEHOLD_ASSERT(progress.match_index < progress.next_index);
}

}  // namespace

void Progress::become_probe(Index base) {
  restart_at_match(*this, ProgressState::probe);
  next_index = std::max(match_index, base).next();
  LEASEHOLD_ASSERT(next_index > match_index);
  LEASEHOLD_ASSERT(next_index > base);
}

void Progress::become_replicate() {
  restart_at_match(*this, ProgressState::replicate);
}

void Progress::become_snapshot(Index base) {
  LEASEHOLD_ASSERT(match_index < base);
  if (state != ProgressState::snapshot) restart_at_match(*this, ProgressState::snapshot);
  next_index = base.next();
  LEASEHOLD_ASSERT(inflights.empty());
}

bool Progress::acknowledged(Index index) {
  if (index <= match_index) return false;
  match_index = index;
  next_index = std::max(next_index, index.next());
  while (!inflights.empty() && inflights.front().last <= index) {
    LEASEHOLD_ASSERT(inflight_bytes >= inflights.front().bytes);
    inflight_bytes -= inflights.front().bytes;
    inflights.pop_front();
  }
  LEASEHOLD_ASSERT(!inflights.empty() || inflight_bytes == 0);
  LEASEHOLD_ASSERT(match_index < next_index);
  return true;
}

Peers::iterator Peers::find(NodeId id) {
  return entries_.begin() + (std::as_const(*this).find(id) - entries_.cbegin());
}

// There are few: to look at each is quicker than to halve.
Peers::const_iterator Peers::find(NodeId id) const {
  auto entry = entries_.begin();
  while (entry != entries_.end() && entry->first != id) ++entry;
  return entry;
}

const Progress& Peers::at(NodeId id) const {
  const auto entry = find(id);
  LEASEHOLD_ASSERT(entry != end());
  return entry->second;
}

std::pair<Peers::iterator, bool> Peers::add(NodeId id) {
  const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                  [id](const Entry& e) { return e.first >= id; });
  if (entry != entries_.end() && entry->first == id) return {entry, false};
  ++changes_;
  return {entries_.emplace(entry, id, Progress()), true};
}

}  // namespace leasehold::raft
