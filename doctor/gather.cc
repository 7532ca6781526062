#include <leasehold/doctor/gather.h>
#include <leasehold/doctor/system_files.h>
#include <leasehold/node/machine_marker.h>
#include <leasehold/node/system_clock.h>

#include <sys/timex.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

namespace leasehold::doctor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSleep{1};
constexpr std::chrono::milliseconds kLookPause{100};
/// Below this a scratch file would take what a node beside needs.
constexpr std::uint64_t kSpaceForScratch = std::uint64_t{64} << 20U;

/// How far CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC: the time in suspend since the boot.
lease::Duration in_suspend() {
  const lease::Now now = node::SystemClock().now();
  return now.holder.since_origin() - now.promise.since_origin();
}

void ask_kernel_for_time(ClockFacts& facts) {
  timex asked{};
  const int state = ::adjtimex(&asked);
  if (state < 0) return;
  facts.synchronised = state != TIME_ERROR && (asked.status & STA_UNSYNC) == 0;
  constexpr double kUnitsPerPpm = 65536;
  // A tick differs from its normal length while the clock is turned by more.
  constexpr double kNormalTick = 10'000;
  facts.slewed_ppm = static_cast<double>(asked.freq) / kUnitsPerPpm +
                     (static_cast<double>(asked.tick) - kNormalTick) / kNormalTick * 1e6;
}

void look_at_marker(const std::string& wish, ClockFacts& facts) {
  node::MachineMarker::Options options;
  options.vm_clock = wish.empty() ? node::MachineMarker::kVmClock : wish;
  options.vm_clock_required = true;
  auto marker = node::MachineMarker::open(options);
  if (!marker) {
    facts.vm_clock_problem = marker.error().message;
    options.vm_clock.clear();
    marker = node::MachineMarker::open(options);
  }
  if (marker) facts.watched = marker.value()->watched();
}

/// Steal time between two looks, as a share.
std::optional<std::uint64_t> stolen_between(const ProcessorTime& before,
                                            const ProcessorTime& after) {
  if (after.all <= before.all || after.stolen < before.stolen) return std::nullopt;
  return (after.stolen - before.stolen) * 1000 / (after.all - before.all);
}

/// All that takes the whole time, each on a thread of its own.
void measure(const Wanted& wanted, Facts& facts) {
  std::atomic<bool> over{false};
  const std::function<bool()> stop = [&over] { return over.load(std::memory_order_relaxed); };
  std::vector<std::thread> threads;
  threads.emplace_back([&] { facts.pause = measure_pauses(stop); });
  const bool space = facts.disk.free_bytes.value_or(kUnlimited) >= kSpaceForScratch;
  if (wanted.sync_test && facts.disk.made && space) {
    threads.emplace_back([&] { facts.disk.sync = measure_syncs(facts.disk.folder, stop); });
  }
  for (ServerFacts& server : facts.servers) {
    threads.emplace_back([&server, &wanted, &stop] { measure_clock(server, wanted.access, stop); });
  }
  const auto begun = Clock::now();
  const auto end = begun + wanted.measure;
  while (Clock::now() < end && wanted.go_on(Clock::now() - begun)) {
    std::this_thread::sleep_for(
        std::min<Clock::duration>(kLookPause, std::max(end - Clock::now(), Clock::duration(1))));
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  facts.measured = Clock::now() - begun;
}

std::vector<ServerFacts> ask_servers(const Wanted& wanted) {
  std::vector<ServerFacts> servers(wanted.servers.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    threads.emplace_back([&one = servers[i], &address = wanted.servers[i], &wanted] {
      one = ask_server(address, wanted.access);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return servers;
}

}  // namespace

PauseFacts measure_pauses(const std::function<bool()>& stop) {
  PauseFacts facts;
  while (!stop()) {
    const auto begun = Clock::now();
    std::this_thread::sleep_for(kSleep);
    facts.longest = std::max<lease::Duration>(facts.longest, Clock::now() - begun - kSleep);
    ++facts.sleeps;
  }
  return facts;
}

Facts gather(const server::ServeSettings& settings, const Wanted& wanted) {
  Facts facts;
  facts.machine = look_at_machine(wanted.root);
  facts.disk = look_at_disk(wanted.root, settings.data_dir);
  facts.folder = look_at_folder(wanted.root, settings);
  facts.addresses = look_at_addresses(settings);
  facts.security = look_at_security(settings);
  facts.own_machine = read_text("/", "proc/sys/kernel/random/boot_id");
  facts.own_version = wanted.version;
  facts.servers = ask_servers(wanted);
  ask_kernel_for_time(facts.clock);
  look_at_marker(settings.vm_clock, facts.clock);
  facts.clock.suspended_before = in_suspend();
  const ProcessorTime before = processor_time(wanted.root);
  measure(wanted, facts);
  facts.machine.stolen_per_mille = stolen_between(before, processor_time(wanted.root));
  facts.clock.suspended_now = in_suspend() - facts.clock.suspended_before;
  return facts;
}

}  // namespace leasehold::doctor
