#include <leasehold/bench/compare/circumstances.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <sys/utsname.h>
#include <sys/vfs.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace leasehold::bench {
namespace {

struct KnownFileSystem {
  std::uint64_t number;  ///< as statfs(2) lists them
  const char* name;
  bool in_memory;
};

constexpr std::array<KnownFileSystem, 8> kFileSystems = {{{0xEF53, "ext4", false},
                                                          {0x58465342, "xfs", false},
                                                          {0x9123683E, "btrfs", false},
                                                          {0x01021994, "tmpfs", true},
                                                          {0x858458F6, "ramfs", true},
                                                          {0x794C7630, "overlayfs", false},
                                                          {0x6969, "NFS", false},
                                                          {0x2FC12FC1, "ZFS", false}}};

/// The rest of the first line that begins so, without blanks and quotes around it.
std::string line_behind(const char* path, const std::string& beginning) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(beginning, 0) != 0) continue;
    const std::size_t from = line.find_first_not_of(" \t:=\"", beginning.size());
    const std::size_t to = line.find_last_not_of(" \t\"");
    return from == std::string::npos ? "" : line.substr(from, to - from + 1);
  }
  return "unknown";
}

}  // namespace

Circumstances look_around(const std::string& folder) {
  Circumstances found;
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  found.started = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(now));
  found.processor = line_behind("/proc/cpuinfo", "model name");
  found.cores = std::thread::hardware_concurrency();
  utsname name{};
  if (uname(&name) == 0) found.kernel = fmt::format("{} {}", name.sysname, name.release);
  found.distribution = line_behind("/etc/os-release", "PRETTY_NAME");
  found.file_system = "unknown";
  struct statfs place {};
  if (statfs(folder.c_str(), &place) == 0) {
    const auto number = static_cast<std::uint64_t>(place.f_type) & 0xffffffffU;
    found.file_system = fmt::format("number {:#x}", number);
    for (const KnownFileSystem& known : kFileSystems) {
      if (known.number != number) continue;
      found.file_system = known.name;
      found.in_memory = known.in_memory;
    }
  }
  double load = 0;
  if (getloadavg(&load, 1) == 1) found.load_at_start = load;
  return found;
}

ProcessorTicks processor_ticks() {
  // "cpu user nice system idle iowait irq softirq steal guest guest_nice": guests are in user.
  std::ifstream file("/proc/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream numbers(line.substr(std::min<std::size_t>(line.size(), 3)));
  ProcessorTicks ticks;
  std::uint64_t number = 0;
  for (int i = 0; i < 8 && numbers >> number; ++i) {
    ticks.all += number;
    if (i == 7) ticks.stolen = number;
  }
  return ticks;
}

double stolen_share(const ProcessorTicks& before, const ProcessorTicks& after) {
  if (after.all <= before.all) return 0;
  return static_cast<double>(after.stolen - before.stolen) /
         static_cast<double>(after.all - before.all);
}

}  // namespace leasehold::bench
