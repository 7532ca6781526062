// Files that are written whole or not at all. Not for other rooms.
#pragma once

#include <leasehold/base/result.h>

#include <string>
#include <string_view>

namespace leasehold::tls {

/// Writes `path` with `mode`, durably. Errors: io; invalid_argument: it exists, and `replace` is
/// false.
Result<void> write_file(const std::string& path, std::string_view bytes, unsigned mode,
                        bool replace);

}  // namespace leasehold::tls
