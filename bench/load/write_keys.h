// Writes keys once each, before a load reads them.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/bench/load/engine.h>
#include <leasehold/bench/load/options.h>

#include <cstdint>
#include <functional>

namespace leasehold::bench {

/// The first `keys` ones. A key that could not be written is tried again some times. Changes
/// `hooks`, which are those of `engine`; `progress` hears about once a second how many were begun.
/// Errors: unavailable (not all could be written), stopped (the user wants an end), io.
Result<void> write_keys(Engine& engine, Engine::Hooks& hooks, const LoadOptions& options,
                        std::uint64_t keys,
                        const std::function<void(std::uint64_t done)>& progress);

}  // namespace leasehold::bench
