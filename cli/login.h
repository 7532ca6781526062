// Who the program is for the nodes: --user and a password, which never stands on the command line.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/cli/parser.h>

namespace leasehold::cli {

/// The flags of every command with --servers.
void add_login(Flags& flags);
/// For the connections from here on: the user of the flags, with the password of --password-file,
/// of LEASEHOLD_PASSWORD, which children of the process do not get, or of a prompt. Errors:
/// invalid_argument, io; each says what to do.
Result<void> log_in();

}  // namespace leasehold::cli
