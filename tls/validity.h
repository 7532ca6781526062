// How long a certificate is good for.
#pragma once

#include <leasehold/base/result.h>

#include <cstdint>
#include <string>

namespace leasehold::tls {

/// The last second, since 1970 in UTC, in which the first certificate of a PEM file is valid.
/// Errors: io, invalid_argument (no certificate); each names the file.
Result<std::int64_t> certificate_end(const std::string& path);

}  // namespace leasehold::tls
