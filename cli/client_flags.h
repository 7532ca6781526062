// The flags of a command of the program that has a parser of its own.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/lease/instant.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::cli {

/// Flags, words between them, and what stands behind "--". A flag's value stands behind it or
/// behind a '='.
class ClientFlags {
 public:
  /// `valued` are the flags that have a value, `bare` those that have none. Errors:
  /// invalid_argument: another flag, or one without its value.
  static Result<ClientFlags> parse(const std::vector<std::string>& given,
                                   const std::vector<std::string_view>& valued,
                                   const std::vector<std::string_view>& bare);

  bool has(std::string_view flag) const { return values_.find(flag) != values_.end(); }
  /// The last one, if it was given several times. Empty: it was not given.
  std::string text(std::string_view flag) const;
  /// All of them, in order.
  std::vector<std::string> texts(std::string_view flag) const;
  /// `otherwise`, if it was not given. Errors: invalid_argument.
  Result<lease::Duration> duration(std::string_view flag, lease::Duration otherwise) const;
  const std::vector<std::string>& words() const { return words_; }
  /// What stands behind "--".
  const std::vector<std::string>& rest() const { return rest_; }

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> words_;
  std::vector<std::string> rest_;
};

/// Whether somebody asks for help, before "--".
bool wants_help(const std::vector<std::string>& given);

}  // namespace leasehold::cli
