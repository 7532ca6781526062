// Whole files, in and out, for the commands of this room.
#pragma once

#include <leasehold/base/result.h>

#include <cstddef>
#include <string>

namespace leasehold::story {

/// The largest file that is read.
inline constexpr std::size_t kFileBytesMax = 256U << 20U;

Result<std::string> read_file(const std::string& name);
Result<void> write_file(const std::string& name, const std::string& text);

}  // namespace leasehold::story
