// The commands that a client may send: one table, which decides everything about them: dispatch,
// arity, use in a transaction, COMMAND, HELP. One file for each chapter of the table
// (commands_*.cc) has the functions.
#pragma once

#include <leasehold/server/front/command_spec.h>

#include <string>
#include <string_view>

namespace leasehold::server {

/// For the front: all of them.
const CommandTable& command_table();

/// The whole table, ascending by name.
const CommandSpec* commands_begin();
const CommandSpec* commands_end();

/// As CommandTable::find().
const CommandSpec* find_command(const Arguments& args);
/// By its name in the table, in any case.
const CommandSpec* find_command_named(std::string_view name);
/// Whether the name is that of a command with subcommands.
bool is_container(const CommandSpec& spec);
bool is_subcommand(const CommandSpec& spec);

/// The text of the error for what find_command() does not know.
std::string problem_of_unknown(const Arguments& args);
/// Why a command of Redis is not here; null for a word that is not a command of Redis, and for a
/// command that is here.
const char* reason_of_refusal(std::string_view name);

const char* group_name(CommandGroup group);

}  // namespace leasehold::server
