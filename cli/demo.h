// `leasehold demo`: three replicas on loopback, and a short story about a leader that dies.
#pragma once

#include <string>

namespace leasehold::cli {

struct DemoOptions {
  /// argv[0]: how to start this program again where /proc does not tell.
  std::string program;
  /// Leave the folder with data and logs behind.
  bool keep = false;
};

/// Tells the story on stdout. Returns 0 when everything in it came true, 1 with a message on stderr
/// otherwise. Leaves no process and, unless asked to, no file behind.
int run_demo(const DemoOptions& options);

}  // namespace leasehold::cli
