// The scripts that lock libraries send. Nothing here runs Lua: a script is recognised by its text,
// and what it does is done by one command of the store. docs/resp.md has the table.
#pragma once

#include <leasehold/kv/command.h>
#include <leasehold/server/command_table.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server {

/// The digest by which clients name a script: SHA-1 in lower-case hexadecimal.
std::string script_digest(std::string_view text);

/// What a text means whatever its blanks, its comments and its quotes are: two texts with the same
/// normal form do the same. Letters of string literals are lower case, for the known scripts have
/// none but names of commands and options there. None: a text with something that no known script
/// has (an escape, a long string, more than kScriptBytesMax).
std::optional<std::string> script_normal_form(std::string_view text);

inline constexpr std::size_t kScriptBytesMax = 4096;

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

/// By its text; none: not one of those that are known.
std::optional<Script> find_script(std::string_view text);

/// What a script with its keys and arguments asks of the store: one operation, or several that are
/// one transaction.
struct ScriptCall {
  std::vector<kv::Operation> operations;
  ReplyForm form = ReplyForm::plain;
};
/// The text of an error, or empty. With views of what the words are views of.
std::string make_script_call(const Script& script, const Arguments& keys, Arguments args,
                             ScriptCall& call);

/// Scripts that clients of this node have shown by their text, by digest. Any thread.
class ScriptCache {
 public:
  /// The digest.
  std::string add(std::string_view text, const Script& script);
  std::optional<Script> find(std::string_view digest) const;
  void clear();

 private:
  /// There are few scripts, but as many ways to lay them out as one likes. The oldest is forgotten,
  /// and its clients are told NOSCRIPT.
  static constexpr std::size_t kScriptsMax = 1024;
  mutable std::mutex mutex_;
  std::map<std::string, Script, std::less<>> scripts_;
  std::deque<std::string> order_;
};

}  // namespace leasehold::server
