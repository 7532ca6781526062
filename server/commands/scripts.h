// The scripts that lock libraries send. Nothing here runs Lua: a script is recognised by its text,
// and what it does is done by one command of the store. docs/resp.md has the table.
#pragma once

#include <leasehold/kv/command.h>
#include <leasehold/server/front/command_spec.h>
#include <leasehold/server/front/script_cache.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server {

/// The digest by which clients name a script: SHA-1 in lower-case hexadecimal.
std::string script_digest(std::string_view text);

/// The text without its differences in blanks, comments and quotes: two texts with the same normal
/// form do the same. Letters of string literals become lower case, because in the known scripts
/// they are only names of commands and options. None: the text has something that no known script
/// has (an escape, a long string, more than kScriptBytesMax).
std::optional<std::string> script_normal_form(std::string_view text);

inline constexpr std::size_t kScriptBytesMax = 4096;

/// The script with this text; none: it is not known.
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

}  // namespace leasehold::server
