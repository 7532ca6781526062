// Reads what was freed. The address sanitizer has to report it.
#include <cstdio>
#include <memory>

int main(int argc, char**) {
  auto owned = std::make_unique<int>(argc);
  const volatile int* freed = owned.get();
  owned.reset();
  std::printf("nobody noticed the use after free; the value is %d\n", *freed);
  return 0;
}
