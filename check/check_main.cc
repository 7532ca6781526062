// leasehold_check: the command `check` as a program of its own, which needs nothing but the
// portable set. The tests of real processes use it.
#include <leasehold/check/check_command.h>

int main(int count, char** arguments) {
  return leasehold::check::run_check_command({arguments + 1, arguments + count});
}
