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

/// What a text means whatever its blanks, its comments and its quotes are: two texts with the same
/// normal form do the same. Letters of string literals are lower case, for the known scripts have
/// none but names of commands and options there. None: a text with something that no known script
/// has (an escape, a long string, more than kScriptBytesMax).
std::optional<std::string> script_normal_form(std::string_view text);

inline constexpr std::size_t kScriptBytesMax = 4096;

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

}  // namespace leasehold::server
