// A file in memory, for readers that take a path.
#pragma once

#include <leasehold/base/assert.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>

namespace leasehold::fuzz {

/// Its content is replaced over and over again. For its owner only, as files of keys have to be.
class MemoryFile {
 public:
  MemoryFile() : file_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    LEASEHOLD_ASSERT(file_ >= 0);
    LEASEHOLD_ASSERT(::fchmod(file_, 0600) == 0);
    path_ = "/proc/self/fd/" + std::to_string(file_);
  }
  const std::string& path_of(std::string_view bytes) {
    LEASEHOLD_ASSERT(::ftruncate(file_, 0) == 0);
    const auto written = ::pwrite(file_, bytes.data(), bytes.size(), 0);
    LEASEHOLD_ASSERT(written == static_cast<ssize_t>(bytes.size()));
    return path_;
  }

 private:
  int file_;
  std::string path_;
};

}  // namespace leasehold::fuzz
