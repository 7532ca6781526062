#include <leasehold/base/assert.h>

#include <cstdio>
#include <cstdlib>

namespace leasehold {

void assertion_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "leasehold: assertion failed: %s at %s:%d\n", condition, file, line);
  std::fflush(stderr);
  std::abort();
}

}  // namespace leasehold
