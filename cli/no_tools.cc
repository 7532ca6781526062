#include <leasehold/cli/tools.h>

namespace leasehold::cli {

// `make demo` builds only what it runs: the tools are a quarter of the program's compilation.
void add_tools(Parser& /*parser*/) {}

}  // namespace leasehold::cli
