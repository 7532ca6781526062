// The commands that a client may send: one table, by name.
#pragma once

#include <leasehold/server/session.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::server {

struct CommandSpec {
  std::string_view name;  ///< lower case
  /// Words, the name included; negative: at least so many.
  int arity;
  CommandEffect effect;
  /// Positions of the keys as Redis clients want to know them: first, last, step. Zeros: none.
  int first_key, last_key, key_step;
  const char* summary;
  /// Appends one reply to `out`, or takes a place of the session.
  void (*run)(Session& session, const Arguments& args, std::string& out);
};

/// None for an unknown name. Upper and lower case are equal.
const CommandSpec* find_command(std::string_view name);

/// Runs one request, whatever it is: appends one reply, or takes a place of the session.
void run_command(Session& session, const CommandSpec* spec, const Arguments& args,
                 std::string& out);

/// Case is ignored; `lower` is in lower case.
bool equals_ignoring_case(std::string_view text, std::string_view lower);

}  // namespace leasehold::server
