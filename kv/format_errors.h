// What the decoders of this room say of bytes that they refuse. Not for other rooms.
#pragma once

#include <leasehold/base/result.h>

#include <string>

namespace leasehold::kv {

inline Error malformed(const char* what) {
  return {ErrorCode::malformed, std::string("malformed ") + what};
}

inline Error unsupported(const char* what, unsigned found, unsigned known) {
  return {ErrorCode::unsupported_format, std::string(what) + " format " + std::to_string(found) +
                                             ", this build knows " + std::to_string(known) +
                                             ": use a newer build"};
}

}  // namespace leasehold::kv
