// Small files of the kernel, as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace leasehold::doctor {

/// The file at `path` below `root`, without the end of its last line; empty if it cannot be read.
std::string read_text(const std::string& root, const std::string& path);
/// Its first word as a number. None: it has none.
std::optional<std::uint64_t> read_number(const std::string& root, const std::string& path);
/// The first word of `text` as a number.
std::optional<std::uint64_t> number_in(const std::string& text);
/// The number behind `key` at the beginning of a line, as in "MemTotal:   1024 kB".
std::optional<std::uint64_t> number_of(const std::string& text, const std::string& key);

/// What a mount is: the one that `folder`, an absolute path without links, lies on.
struct Mount {
  std::string point;
  std::string kind;
  std::string options;  ///< of the mount and of the file system, between commas
};
/// Of the text of /proc/self/mountinfo. None: no mount contains it.
std::optional<Mount> mount_of(const std::string& mountinfo, const std::string& folder);

/// The processors' time so far, in ticks, and how much of it the host of the machine took.
struct ProcessorTime {
  std::uint64_t all = 0;
  std::uint64_t stolen = 0;
};
ProcessorTime processor_time(const std::string& root);

/// The process that holds a lock on the file of that device and number, by the text of
/// /proc/locks; 0: none.
std::uint64_t lock_holder(const std::string& locks, std::uint64_t device_major,
                          std::uint64_t device_minor, std::uint64_t inode);

}  // namespace leasehold::doctor
