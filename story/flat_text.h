// One JSON object in one line, flat: its members are strings and integers. The form of each line of
// a trace.
#pragma once

#include <leasehold/base/result.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace leasehold::story {

/// Each appends `,"name":value`; the object begins with another member, or is `{` until then.
void put_string(std::string& out, const char* name, const std::string& value);  ///< none if empty
void put_number(std::string& out, const char* name, std::uint64_t value);       ///< none if 0
void put_signed(std::string& out, const char* name, std::int64_t value);

/// Reads one line, which outlives it. It refuses what the functions above would not write.
class FlatReader {
 public:
  explicit FlatReader(const std::string& text) : text_(text) {}

  /// The whole line. `member` reads the value of the member with that name. Errors: malformed, also
  /// if a name stands twice or one of `needed` is missing; and those of `member`.
  Result<void> object(const std::function<Result<void>(const std::string& name)>& member,
                      const std::vector<const char*>& needed);
  /// False: there is no such value here. At most 18 digits.
  bool string(std::string& value);
  bool integer(std::int64_t& value);

 private:
  bool take(char c);
  bool escaped(std::string& value);

  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace leasehold::story
