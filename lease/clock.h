// The clock interface. The only implementations are the system's clocks (node/) and simulated ones
// (sim/).
#pragma once

#include <leasehold/lease/instant.h>

namespace leasehold::lease {

/// The source of Now. Safe to call from any thread.
///
/// Each clock's rate stays within the configured drift bound of true time, and neither ever runs
/// backwards; an implementation that sees one run backwards stops the process, because no lease can
/// be judged on it.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Both clocks. Sample it after the input that it will accompany is in memory, never before.
  virtual Now now() const = 0;
  /// The holder's clock alone, for a lease check: one clock read. never() once disrupted(): then no
  /// lease is valid.
  virtual HolderInstant holder_now() const = 0;
  /// Whether the machine was stopped from outside in a way that these clocks may not have seen, so
  /// that a lease judged on them may be over. Once true, it stays true. The node ends then, and its
  /// next start is a new incarnation. Ask after reading a time: the answer judges that time.
  virtual bool disrupted() const { return false; }
};

}  // namespace leasehold::lease
