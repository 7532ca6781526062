// Flips a bit in a value of a node that does not run, under a checksum that fits.
//
//   flip_value FOLDER KEY
//
// FOLDER is the node's folder `state`. Status: 0 done, 1 not.
#include <leasehold/tests/kv/flipped_value.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc == 3 && leasehold::kv::testing::flip_bit(argv[1], argv[2])) return 0;
  std::fprintf(stderr, "flip_value FOLDER KEY: nothing was flipped\n");
  return 1;
}
