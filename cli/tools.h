// The commands for people who study the protocol or measure servers: the load, the simulator, the
// explorer, the checker, stories.
#pragma once

#include <leasehold/cli/parser.h>

namespace leasehold::cli {

/// Adds them to a program that has them (LEASEHOLD_TOOLS), and else nothing.
void add_tools(Parser& parser);

}  // namespace leasehold::cli
