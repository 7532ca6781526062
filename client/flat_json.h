// JSON as a record in a key has it: one object, whose fields are texts and numbers.
#pragma once

#include <leasehold/base/result.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::client {

struct FlatJsonValue {
  bool is_text = false;
  std::string text;  ///< of a number: its digits

  /// None: it is no whole number from 0 to 2^63 - 1.
  std::optional<std::uint64_t> whole() const;
};

/// By name. Errors: malformed, for all other bytes: other values, a name twice, bytes after the
/// object, texts that are not UTF-8.
Result<std::map<std::string, FlatJsonValue, std::less<>>> parse_flat_json(std::string_view bytes);

/// With its quotes. `text` is UTF-8.
void append_json_text(std::string& out, std::string_view text);
bool is_utf8(std::string_view text);

}  // namespace leasehold::client
