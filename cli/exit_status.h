// How a command ends: its exit status, which kExitStatuses (manual.h) explains to users, and what
// it says if it failed.
#pragma once

#include <string>

namespace leasehold::cli {

inline constexpr int kNo = 1;
inline constexpr int kUsage = 2;
inline constexpr int kOutcomeUnknown = 3;
inline constexpr int kNotExecuted = 4;
// 5: server::kRemoved, of serve.
inline constexpr int kLockLost = 6;

/// Says on the error stream why `leasehold COMMAND` failed; gives `status` back.
int fail(const char* command, const std::string& text, int status);

}  // namespace leasehold::cli
