// Adds one to the largest int. The undefined-behaviour sanitizer has to report it.
#include <cstdio>
#include <limits>

int main(int argc, char**) {
  const int largest = std::numeric_limits<int>::max() - 1 + argc;
  const volatile int beyond = largest + argc;
  std::printf("nobody noticed the overflow; the value is %d\n", beyond);
  return 0;
}
