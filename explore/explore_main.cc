// leasehold_explore: the command `explore` as a program of its own, which needs nothing but the
// portable set. The mutants are built into it.
#include <leasehold/explore/explore_command.h>

int main(int count, char** arguments) {
  return leasehold::explore::run_explore_command({arguments + 1, arguments + count});
}
