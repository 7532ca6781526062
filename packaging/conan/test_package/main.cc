#include <leasehold/lease/timing.h>
#include <leasehold/node/system_clock.h>

#include <cstdio>

int main() {
  leasehold::node::SystemClock clock;
  const bool holds = leasehold::lease::Timing{}.validate().ok();
  std::printf("the default lease %s\n", holds ? "holds" : "does not hold");
  return holds && clock.holder_now() != leasehold::lease::HolderInstant() ? 0 : 1;
}
