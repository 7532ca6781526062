// Signals that ask a command of the program to end, taken one by one.
#pragma once

#include <leasehold/lease/instant.h>

#include <csignal>

namespace leasehold::cli {

/// Made in the first thread, before there are others: they inherit what it blocks.
class EndingSignals {
 public:
  EndingSignals();
  /// SIGINT, SIGTERM, SIGHUP or SIGQUIT, less those that were ignored at the start; and SIGCHLD.
  /// 0: none came in time.
  int next(lease::Duration wait) const;
  /// The same without SIGCHLD: for a command without children of its own.
  int next_ending(lease::Duration wait) const;

 private:
  sigset_t set_;
};

}  // namespace leasehold::cli
