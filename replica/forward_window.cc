#include <leasehold/replica/forward_window.h>

#include <algorithm>

namespace leasehold::replica {

bool ForwardWindow::take(const raft::Peer& origin, raft::Incarnation incarnation,
                         std::uint64_t sequence) {
  constexpr std::uint64_t kBits = 64;
  Origin& state = origins_[{origin.id, origin.uuid}];
  if (state.seen.empty() || incarnation > state.incarnation) {
    state.incarnation = incarnation;
    state.newest = sequence;
    state.seen.assign(kWindow / kBits, 0);
  }
  // From a process that has been replaced: no caller waits for it, and it may have been accepted
  // already.
  if (incarnation < state.incarnation) return false;
  if (sequence > state.newest) {
    const std::uint64_t skipped = sequence - state.newest;
    if (skipped >= kWindow) {
      std::fill(state.seen.begin(), state.seen.end(), 0);
    } else {
      // By steps: the largest sequence, which only a faulty peer sends, has no next one.
      for (std::uint64_t step = 1; step <= skipped; ++step) {
        const std::uint64_t at = (state.newest + step) % kWindow;
        state.seen[at / kBits] &= ~(std::uint64_t{1} << (at % kBits));
      }
    }
    state.newest = sequence;
  } else if (state.newest - sequence >= kWindow) {
    return false;
  }
  const std::uint64_t at = sequence % kWindow;
  const std::uint64_t bit = std::uint64_t{1} << (at % kBits);
  std::uint64_t& word = state.seen[at / kBits];
  if ((word & bit) != 0) return false;
  word |= bit;
  return true;
}

}  // namespace leasehold::replica
