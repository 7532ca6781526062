#include <leasehold/bench/load/write_keys.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::bench {
namespace {

constexpr std::uint64_t kKeysInFlight = 512;
constexpr std::uint64_t kKeysBytes = 16U << 20U;
/// A key that could not be written is tried again, so often and after so long.
constexpr int kKeysPasses = 20;
constexpr std::chrono::milliseconds kKeysPause{250};

Error not_all_written(const Measured& total) {
  std::string kinds;
  for (const auto& [kind, count] : total.errors) {
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, kind);
  }
  return Error{ErrorCode::unavailable,
               fmt::format("not all keys could be written ({}): try again, or --no-load", kinds)};
}

}  // namespace

Result<void> write_keys(Engine& engine, Engine::Hooks& hooks, const LoadOptions& options,
                        std::uint64_t keys,
                        const std::function<void(std::uint64_t done)>& progress) {
  std::uint64_t next = 0;
  std::vector<LoadOperation> again;
  Phase phase;
  phase.in_flight = std::clamp<std::uint64_t>(kKeysBytes / options.value_bytes, 1, kKeysInFlight);
  phase.next = [&next, keys]() -> std::optional<LoadOperation> {
    if (next == keys) return std::nullopt;
    return LoadOperation{OperationKind::insert, next++, 1};
  };
  hooks.failed = [&again](const LoadOperation& operation) { again.push_back(operation); };
  hooks.passed = [&next, &progress](const Measured&, std::uint64_t, double, std::size_t) {
    progress(next);
  };
  Result<void> written;
  for (int pass = 1;; ++pass) {
    const auto loaded = engine.run(phase);
    if (!loaded) {
      written = loaded.error();
    } else if (loaded.value().ended_early) {
      written =
          Error{ErrorCode::stopped, "ended before all keys were written: nothing was measured"};
    } else if (!again.empty() && pass == kKeysPasses) {
      written = not_all_written(loaded.value().total);
    }
    if (!written || again.empty()) break;
    std::this_thread::sleep_for(kKeysPause);
    phase.next = [left = std::exchange(again, {})]() mutable -> std::optional<LoadOperation> {
      if (left.empty()) return std::nullopt;
      const LoadOperation operation = left.back();
      left.pop_back();
      return operation;
    };
  }
  hooks.failed = nullptr;
  hooks.passed = nullptr;
  return written;
}

}  // namespace leasehold::bench
