// What the system says of this process and of its disk.
#pragma once

#include <cstdint>
#include <string>

namespace leasehold::server {

/// 0 where the system does not say.
struct ProcessFigures {
  double cpu_seconds = 0;
  double start_seconds = 0;  ///< since 1970
  std::uint64_t resident_bytes = 0;
  std::uint64_t virtual_bytes = 0;
  std::uint64_t threads = 0;
  std::uint64_t open_files = 0;
  std::uint64_t open_files_max = 0;
  std::uint64_t disk_free_bytes = 0;  ///< that this user may take
  std::uint64_t disk_bytes = 0;
};

/// Reads it. May wait for the disk of `data_dir`.
ProcessFigures process_figures(const std::string& data_dir);

}  // namespace leasehold::server
