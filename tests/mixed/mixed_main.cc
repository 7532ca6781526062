// leasehold_mixed_sim: the command `sim` for a group of two versions: each node runs release 0.1 or
// this code, and changes at restarts.
#include "earlier_replica.h"

#include <leasehold/sim/sim_command.h>

int main(int count, char** arguments) {
  return leasehold::sim::run_sim_command({arguments + 1, arguments + count},
                                         leasehold::mixed::make_earlier);
}
