#include <leasehold/cli/exit_status.h>

#include <iostream>

namespace leasehold::cli {

int fail(const char* command, const std::string& text, int status) {
  std::cerr << "leasehold " << command << ": " << text << std::endl;
  return status;
}

}  // namespace leasehold::cli
