// What the kernel and the control group allow.
#include <leasehold/doctor/judge.h>
#include <leasehold/doctor/make_finding.h>
#include <leasehold/server/descriptor_room.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace leasehold::doctor {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20U;
constexpr std::uint64_t kMapCountMin = 65530;
constexpr std::uint64_t kQueueMin = 512;
constexpr std::uint64_t kSwapSeen = 16 * kMebibyte;
/// What a node takes beside what settings bound: code, stacks, the store's own caches.
constexpr std::uint64_t kBaseBytes = 96 * kMebibyte;
/// Recent entries of a group's log.
constexpr std::uint64_t kGroupBytes = 8 * kMebibyte;
/// A limit above this stands for none.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60U;

Finding judge_files(const server::ServeSettings& settings, const MachineFacts& facts) {
  const char* const kName = "open-files";
  if (!facts.open_files_max) return skipped(kName, "the kernel does not show the limit");
  const std::uint64_t clients = settings.server.clients_max;
  const std::uint64_t needed = clients + server::kOwnDescriptors;
  if (*facts.open_files_max >= needed) {
    return fine(kName, fmt::format("files and connections enough for --clients-max {}", clients));
  }
  const std::string cure = fmt::format(
      "LimitNOFILE={} in the unit of systemd (else ulimit -Hn), or --clients-max {}", needed,
      server::clients_that_fit(*facts.open_files_max, settings.server.clients_max));
  const std::string found =
      fmt::format("at most {} files and connections may be open, and --clients-max {} needs {}",
                  *facts.open_files_max, clients, needed);
  return *facts.open_files_max < clients ? fault(kName, found, cure) : warning(kName, found, cure);
}

Finding judge_least(const char* name, const char* setting, std::optional<std::uint64_t> value,
                    std::uint64_t least, const char* why) {
  if (!value) return skipped(name, fmt::format("the kernel does not show {}", setting));
  const std::string found = fmt::format("{} is {}", setting, *value);
  if (*value >= least) return fine(name, found);
  return warning(name, fmt::format("{}: {}", found, why),
                 fmt::format("sysctl -w {}={}, and a line in /etc/sysctl.d", setting, 2 * least));
}

Finding judge_overcommit(const MachineFacts& facts) {
  const char* const kName = "overcommit";
  if (!facts.overcommit) return skipped(kName, "the kernel does not show vm.overcommit_memory");
  constexpr std::uint64_t kNever = 2;
  const std::string found = fmt::format("vm.overcommit_memory is {}", *facts.overcommit);
  if (*facts.overcommit != kNever) return fine(kName, found);
  return warning(kName, found + ": memory that is only reserved counts, and a node may get none",
                 "sysctl -w vm.overcommit_memory=0, and a line in /etc/sysctl.d");
}

Finding judge_huge_pages(const MachineFacts& facts) {
  const char* const kName = "huge-pages";
  if (facts.huge_pages.empty()) return skipped(kName, "the kernel shows no transparent huge pages");
  const std::string found = fmt::format("transparent huge pages: {}", facts.huge_pages);
  if (facts.huge_pages != "always") return fine(kName, found);
  return warning(kName, found + ": while the kernel makes them, threads pause",
                 "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, or "
                 "transparent_hugepage=madvise on the kernel's command line");
}

Finding judge_swap(const MachineFacts& facts) {
  const char* const kName = "swap";
  if (!facts.swap_used_bytes) return skipped(kName, "the kernel does not show its swap");
  if (*facts.swap_used_bytes < kSwapSeen) return fine(kName, "swap is not in use");
  return warning(kName,
                 fmt::format("{} of swap are in use: a thread that needs such a page waits for a "
                             "disk",
                             size_text(*facts.swap_used_bytes)),
                 "more memory; swapoff -a, or MemorySwapMax=0 in the unit of systemd");
}

Finding judge_quota(const server::ServeSettings& settings, const MachineFacts& facts) {
  const char* const kName = "cpu-quota";
  if (!facts.cpu_quota) return fine(kName, "no quota of processor time");
  const double wanted = static_cast<double>(settings.server.io_threads) + 2;
  const std::string found = fmt::format("a quota of {:.2f} processors", *facts.cpu_quota);
  const std::string cure = fmt::format(
      "CPUQuota={:.0f}% in the unit of systemd, --cpus {:.0f} of the container, or no quota: use "
      "weights",
      wanted * 100, wanted);
  if (*facts.cpu_quota < 1) {
    return fault(kName, found + ": once it is used up all threads stop, heartbeats too", cure);
  }
  if (*facts.cpu_quota < wanted || facts.cpu_throttled.value_or(0) > 0) {
    return warning(
        kName,
        fmt::format("{}, and the node's threads may use {:.0f}: they stop when it is used "
                    "up (so far {} times)",
                    found, wanted, facts.cpu_throttled.value_or(0)),
        cure);
  }
  return fine(kName, found);
}

Finding judge_memory(const server::ServeSettings& settings, const MachineFacts& facts) {
  const char* const kName = "memory";
  const std::uint64_t limit = facts.memory_limit_bytes.value_or(kUnlimited);
  const std::uint64_t machine = facts.memory_bytes.value_or(kUnlimited);
  const std::uint64_t least = std::min(limit, machine);
  if (least >= kNoLimit) return skipped(kName, "the kernel does not show how much there is");
  const std::uint64_t needed = memory_needed(settings);
  const std::string found =
      fmt::format("{} {}; with these settings a node may use {}",
                  limit <= machine ? "the control group allows" : "this machine has",
                  size_text(least), size_text(needed));
  const std::string cure =
      fmt::format("{} of {}, or less for --client-memory-max ({}) and --read-cache ({})",
                  limit <= machine ? "a limit (MemoryMax=, memory.max)" : "a memory",
                  size_text(needed + needed / 2), size_text(settings.server.client_memory_max),
                  size_text(settings.read_cache));
  if (least < needed) return fault(kName, found + ": the kernel would end it", cure);
  if (least < needed + needed / 4) return warning(kName, found, cure);
  return fine(kName, found);
}

}  // namespace

std::uint64_t memory_needed(const server::ServeSettings& settings) {
  return kBaseBytes + settings.server.client_memory_max + settings.read_cache +
         settings.groups * (kGroupBytes + settings.events.bytes_max);
}

Findings judge_limits(const server::ServeSettings& settings, const MachineFacts& facts) {
  return {judge_files(settings, facts),
          judge_least("map-count", "vm.max_map_count", facts.map_count_max, kMapCountMin,
                      "the store and the threads' stacks are mapped"),
          judge_least("connection-queue", "net.core.somaxconn", facts.queue_max, kQueueMin,
                      "when many clients connect at once, some are dropped"),
          judge_overcommit(facts),
          judge_huge_pages(facts),
          judge_swap(facts),
          judge_quota(settings, facts),
          judge_memory(settings, facts)};
}

}  // namespace leasehold::doctor
