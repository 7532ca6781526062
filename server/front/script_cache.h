// What this node remembers of the scripts that lock libraries send. server/commands/scripts.h knows
// what a script does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::server {

/// `value` and the like are its arguments, in this order. What is equal is the key's value to
/// `value`.
enum class ScriptAction : std::uint8_t {
  del_if_equal,        ///< value
  del_or_minus_one,    ///< value: the same, and -1 if there is no such key
  del_each_if_equal,   ///< value: how many
  pttl_if_equal,       ///< value: else -3
  expire_or_nothing,   ///< value, seconds: if equal
  pexpire_or_nothing,  ///< value, milliseconds: if equal
  pexpire_or_set,      ///< value, milliseconds: if equal; if there is no such key, it is set
  add_if_equal,        ///< value, milliseconds, on top of what is left; only a key with a time
  retime_if_equal,     ///< value, milliseconds, "0": adds, else replaces; only a key with a time
  set_if_none,         ///< value, milliseconds: OK, or null if there is such a key
  set_all_if_none,     ///< value, milliseconds: how many keys, or 0
  set_all_if_equal,    ///< value, milliseconds: how many keys, or 0
};
struct Script {
  ScriptAction action = ScriptAction::del_if_equal;
  /// A database comes before the other arguments.
  bool database_first = false;
};

/// Scripts that clients of this node have shown by their text, by digest. Any thread.
class ScriptCache {
 public:
  /// `digest`: in lower case.
  void add(const std::string& digest, const Script& script);
  /// Upper and lower case are equal.
  std::optional<Script> find(std::string_view digest) const;
  void clear();

 private:
  /// There are few scripts, but any number of layouts of them. The oldest is forgotten, and its
  /// clients get NOSCRIPT.
  static constexpr std::size_t kScriptsMax = 1024;
  mutable std::mutex mutex_;
  std::map<std::string, Script, std::less<>> scripts_;
  std::deque<std::string> order_;
};

}  // namespace leasehold::server
