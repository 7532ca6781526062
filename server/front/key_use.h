// What a command does with the keys and channels among its words.
#pragma once

#include <leasehold/server/users/user_rules.h>

#include <cstdint>
#include <string_view>

namespace leasehold::server {

struct KeyUse {
  enum class Kind : std::uint8_t {
    key,
    prefix,  ///< every key that begins so
    channel,
    channel_pattern,
    lease_name,  ///< no key, and no rights are asked for it
  };
  std::string_view text;
  Kind kind = Kind::key;
  KeyAccess access = kReadsAndWrites;  ///< of a key or prefix
};

}  // namespace leasehold::server
