#include <leasehold/server/admin/process_figures.h>

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

namespace leasehold::server {
namespace {

/// When the machine started, seconds since 1970; 0: unknown.
double boot_seconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  double seconds = 0;
  while (file >> word) {
    if (word == "btime" && file >> seconds) return seconds;
  }
  return 0;
}

/// The fields of /proc/self/stat behind the name of the program, which may hold blanks.
void read_stat(ProcessFigures& figures) {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return;
  std::istringstream fields(text.substr(name_end + 1));
  std::string word;
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  // Their numbers are those of proc(5): 3 is the state.
  for (int number = 3; fields >> word; ++number) {
    const double value = number == 3 ? 0 : std::strtod(word.c_str(), nullptr);
    if (number == 14 || number == 15) figures.cpu_seconds += value / ticks;
    if (number == 20) figures.threads = static_cast<std::uint64_t>(value);
    if (number == 22) figures.start_seconds = boot_seconds() + value / ticks;
    if (number == 23) figures.virtual_bytes = static_cast<std::uint64_t>(value);
    if (number == 24) {
      figures.resident_bytes =
          static_cast<std::uint64_t>(value) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    }
  }
}

}  // namespace

ProcessFigures process_figures(const std::string& data_dir) {
  ProcessFigures figures;
  read_stat(figures);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) figures.open_files_max = limit.rlim_cur;
  std::error_code error;
  for (std::filesystem::directory_iterator file("/proc/self/fd", error), end; file != end;
       file.increment(error)) {
    if (error) break;
    ++figures.open_files;
  }
  // To look takes one, too: without one left, all are open.
  if (error == std::errc::too_many_files_open) figures.open_files = figures.open_files_max;
  const auto space = std::filesystem::space(data_dir, error);
  if (!error) {
    figures.disk_free_bytes = space.available;
    figures.disk_bytes = space.capacity;
  }
  return figures;
}

}  // namespace leasehold::server
