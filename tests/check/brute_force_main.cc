// check_brute_force [HISTORIES [SEED]]: compares the checker with the definition on that many small
// random histories (default a million). Status 0: they agree on all; 1: the first that differs is
// printed.
#include "brute_force.h"

#include <cstdio>
#include <cstdlib>

int main(int count, char** arguments) {
  const std::uint64_t histories =
      count > 1 ? std::strtoull(arguments[1], nullptr, 10) : std::uint64_t{1'000'000};
  const std::uint64_t seed =
      count > 2 ? std::strtoull(arguments[2], nullptr, 10) : std::uint64_t{1};
  std::uint64_t good = 0;
  const std::string wrong = leasehold::check::compare_with_brute_force(seed, histories, good);
  if (!wrong.empty()) {
    std::printf("%s\n", wrong.c_str());
    return 1;
  }
  std::printf("%llu histories, %llu of them with an order: the checker agrees on all\n",
              static_cast<unsigned long long>(histories), static_cast<unsigned long long>(good));
  return 0;
}
