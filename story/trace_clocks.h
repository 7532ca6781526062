// How the clocks of the nodes in a cluster trace are laid beside each other: a message arrives
// after it was sent, whatever the two clocks show.
#pragma once

#include <leasehold/story/cluster_trace.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace leasehold::story {

/// A record `sent` of one part and the record `delivered` of the same message in another.
struct Passage {
  std::size_t from_part = 0, sent = 0;
  std::size_t to_part = 0, delivered = 0;
};

/// The clock of a part on the common time, which begins with the first part.
struct PartClock {
  Duration begin{0};   ///< of the part, on its own clock
  Duration offset{0};  ///< the common time then
  double rate = 0;     ///< the common time runs so much faster than the clock; 0, as a rule
  /// By messages and probes alone the offset lies within these, the first part's being exact.
  std::optional<Duration> earliest, latest;

  Duration common(Duration own) const;
};

/// What the messages between two parts alone say: the other's clock shows so much more than the
/// one's, at an instant. With clocks that drift these are the bounds over the whole time.
struct ClockPair {
  std::size_t one = 0, other = 0;
  std::optional<Duration> low, high;
  std::size_t messages = 0;
};

struct ClockAlignment {
  std::vector<PartClock> clocks;  ///< by part
  std::vector<ClockPair> pairs;   ///< of parts that exchanged messages
  bool shared = false;            ///< parts of one machine were taken to have one clock
  bool drifting = false;          ///< no offsets alone explain all messages: clocks have rates
  bool consistent = true;         ///< false: no rates do, either; a clock has leapt
};

/// The messages whose sending and arrival are both there beyond doubt: their records are the only
/// ones of that content.
std::vector<Passage> sure_passages(const ClusterTrace& trace);
ClockAlignment align_clocks(const ClusterTrace& trace);
/// All messages that were sent and have arrived, by the aligned clocks; none arrives before it was
/// sent.
std::vector<Passage> passages(const ClusterTrace& trace, const ClockAlignment& alignment);

}  // namespace leasehold::story
