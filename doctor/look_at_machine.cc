#include <leasehold/doctor/gather.h>
#include <leasehold/doctor/system_files.h>

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace leasehold::doctor {
namespace {

constexpr const char* kClockSource =
    "sys/devices/system/clocksource/clocksource0/current_clocksource";
constexpr const char* kClockSources =
    "sys/devices/system/clocksource/clocksource0/available_clocksource";

/// "always [madvise] never": the one between brackets.
std::string chosen_word(const std::string& text) {
  const std::size_t begin = text.find('[');
  const std::size_t end = text.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return text.substr(begin + 1, end - begin - 1);
}

/// "Max open files            1024                 524288               files"
std::optional<std::uint64_t> open_files_max(const std::string& limits) {
  const std::string kKey = "Max open files";
  std::istringstream lines(limits);
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, kKey.size(), kKey) != 0) continue;
    std::istringstream words(line.substr(kKey.size()));
    std::string soft;
    std::string hard;
    words >> soft >> hard;
    return hard == "unlimited" ? kUnlimited : number_in(hard);
  }
  return std::nullopt;
}

/// Kibibytes in use, of all lines but the head: filename type size used priority.
std::optional<std::uint64_t> swap_used(const std::string& swaps) {
  if (swaps.empty()) return std::nullopt;
  std::uint64_t used = 0;
  std::istringstream lines(swaps);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string name;
    std::string kind;
    std::uint64_t size = 0;
    std::uint64_t kibibytes = 0;
    if (words >> name >> kind >> size >> kibibytes) used += kibibytes << 10U;
  }
  return used;
}

/// The path of this process's group in the hierarchy of `controller`; that of version 2 has none
/// ("0::/path").
std::string group_path(const std::string& groups, const std::string& controller) {
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool fits = controller.empty() ? names == ",," && line.compare(0, 2, "0:") == 0
                                         : names.find("," + controller + ",") != std::string::npos;
    if (fits) return line.substr(second + 1);
  }
  return "/";
}

/// The folders from the group's own up to the top, each with a slash at its end.
std::vector<std::string> group_folders(const std::string& top, std::string path) {
  std::vector<std::string> folders;
  while (!path.empty() && path != "/") {
    folders.push_back(fmt::format("{}{}/", top, path));
    path.erase(path.rfind('/'));
  }
  folders.push_back(top + "/");
  return folders;
}

void keep_least(std::optional<std::uint64_t>& least, std::optional<std::uint64_t> other) {
  if (other) least = std::min(least.value_or(kUnlimited), *other);
}

void look_at_new_groups(const std::string& root, const std::string& groups, MachineFacts& facts) {
  for (const std::string& folder : group_folders("sys/fs/cgroup", group_path(groups, ""))) {
    keep_least(facts.memory_limit_bytes, read_number(root, folder + "memory.max"));
    const std::string cpu = read_text(root, folder + "cpu.max");  // "max 100000", "50000 100000"
    const auto quota = number_in(cpu);
    const auto period = number_in(cpu.substr(std::min(cpu.size(), cpu.find(' '))));
    if (quota && period && *period > 0) {
      const double processors = static_cast<double>(*quota) / static_cast<double>(*period);
      facts.cpu_quota = std::min(facts.cpu_quota.value_or(processors), processors);
    }
    const auto throttled = number_of(read_text(root, folder + "cpu.stat"), "nr_throttled");
    if (throttled) facts.cpu_throttled = std::max(facts.cpu_throttled.value_or(0), *throttled);
  }
}

void look_at_old_groups(const std::string& root, const std::string& groups, MachineFacts& facts) {
  for (const std::string& folder :
       group_folders("sys/fs/cgroup/memory", group_path(groups, "memory"))) {
    keep_least(facts.memory_limit_bytes, read_number(root, folder + "memory.limit_in_bytes"));
  }
  for (const std::string& folder : group_folders("sys/fs/cgroup/cpu", group_path(groups, "cpu"))) {
    // -1: none.
    const auto quota = read_number(root, folder + "cpu.cfs_quota_us");
    const auto period = read_number(root, folder + "cpu.cfs_period_us");
    if (quota && period && *period > 0) {
      const double processors = static_cast<double>(*quota) / static_cast<double>(*period);
      facts.cpu_quota = std::min(facts.cpu_quota.value_or(processors), processors);
    }
  }
}

}  // namespace

MachineFacts look_at_machine(const std::string& root) {
  MachineFacts facts;
  facts.clock_source = read_text(root, kClockSource);
  facts.clock_sources = read_text(root, kClockSources);
  facts.virtual_machine = read_text(root, "proc/cpuinfo").find(" hypervisor") != std::string::npos;
  facts.open_files_max = open_files_max(read_text(root, "proc/self/limits"));
  facts.map_count_max = read_number(root, "proc/sys/vm/max_map_count");
  facts.queue_max = read_number(root, "proc/sys/net/core/somaxconn");
  facts.overcommit = read_number(root, "proc/sys/vm/overcommit_memory");
  facts.huge_pages = chosen_word(read_text(root, "sys/kernel/mm/transparent_hugepage/enabled"));
  facts.swap_used_bytes = swap_used(read_text(root, "proc/swaps"));
  if (const auto total = number_of(read_text(root, "proc/meminfo"), "MemTotal:")) {
    facts.memory_bytes = *total << 10U;
  }
  const std::string groups = read_text(root, "proc/self/cgroup");
  look_at_new_groups(root, groups, facts);
  look_at_old_groups(root, groups, facts);
  return facts;
}

}  // namespace leasehold::doctor
