// The exit statuses of the program; kExitStatuses (manual.h) explains them to users.
#pragma once

namespace leasehold::cli {

inline constexpr int kNo = 1;
inline constexpr int kUsage = 2;
inline constexpr int kOutcomeUnknown = 3;
inline constexpr int kNotExecuted = 4;
// 5: server::kRemoved, of serve.
inline constexpr int kLockLost = 6;

}  // namespace leasehold::cli
