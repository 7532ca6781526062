// The reply at the front of what a server sent: how long it is, and whether it is an error. It
// copies nothing, because a load reads millions of them.
#pragma once

#include <leasehold/base/result.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leasehold::bench {

struct ReplyView {
  enum class Kind : std::uint8_t {
    incomplete,  ///< more has to arrive
    value,
    null,   ///< a key that is not there
    error,  ///< `text` is its line, without the sign
  };
  Kind kind = Kind::incomplete;
  std::size_t length = 0;
  /// Of an error, of a line or of a string; part of the bytes that were given.
  std::string_view text;
};

/// Of RESP2 or RESP3. Errors: malformed.
Result<ReplyView> first_reply(std::string_view bytes);

/// "TRYAGAIN" of "TRYAGAIN the leader changed": by which errors are counted. At most 32 letters.
std::string_view error_word(std::string_view text);

}  // namespace leasehold::bench
