// Disk over the operating system's files. Only this part of the room calls the operating system.
#pragma once

#include <leasehold/storage/disk.h>

#include <cstddef>
#include <memory>
#include <string>

namespace leasehold::storage {

/// Makes the folder, with its parents, unless it exists, and locks it until the result is
/// destroyed. Errors: in_use, io; each names the folder.
Result<std::unique_ptr<Disk>> open_posix_disk(const std::string& path);

/// The same folder for reading alone, also while another thread or process has it. Errors: io.
Result<std::unique_ptr<const Disk>> view_posix_disk(const std::string& path);

/// Fills `bytes` bytes with random ones of the operating system. Errors: io.
Result<void> fill_random(void* to, std::size_t bytes);

}  // namespace leasehold::storage
