// The command `bench`: a load for servers, and what it shows.
#pragma once

#include <leasehold/cli/parser.h>

namespace leasehold::cli {

Run add_bench(Flags& flags);

}  // namespace leasehold::cli
