// leasehold_sim: the command `sim` as a program of its own, which needs nothing but the portable
// set. The mutants are built into it.
#include <leasehold/sim/sim_command.h>

int main(int count, char** arguments) {
  return leasehold::sim::run_sim_command({arguments + 1, arguments + count});
}
