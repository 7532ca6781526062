// The secret that the members of a group share where they have no certificates.
//
// A key file has one key a line: 64 hexadecimal digits, which are 32 random bytes. A node proves
// itself by the first key and accepts any of them, so a key is replaced in three steps: the new one
// is added as the second line on every node; then it becomes the first line; then the old one goes.
// docs/security.md has the commands.
#pragma once

#include <leasehold/base/result.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::tls {

inline constexpr std::size_t kGroupKeyBytes = 32;
/// Keys that a file may hold.
inline constexpr std::size_t kGroupKeysMax = 4;

/// One key. Its bytes are wiped from memory when it ends.
class GroupKey {
 public:
  /// Errors: malformed: not 64 hexadecimal digits.
  static Result<GroupKey> parse(std::string_view hex);
  GroupKey(const GroupKey&) = default;
  GroupKey& operator=(const GroupKey&) = default;
  ~GroupKey();

  const std::array<unsigned char, kGroupKeyBytes>& bytes() const { return bytes_; }
  /// Names the key on the wire and in logs, and tells nothing about it: 16 hexadecimal digits of a
  /// hash.
  const std::string& name() const { return name_; }

 private:
  GroupKey() = default;
  std::array<unsigned char, kGroupKeyBytes> bytes_{};
  std::string name_;
};

/// Reads a key file: the first key is the one to prove oneself by. Errors: io, malformed (with the
/// line), invalid_argument: others than its owner may read the file.
Result<std::vector<GroupKey>> read_group_keys(const std::string& path);

}  // namespace leasehold::tls
