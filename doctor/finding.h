// What a check came to, as people and programs read it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::doctor {

enum class Level : std::uint8_t {
  ok,
  skipped,  ///< it could not be looked at here
  warning,  ///< a node serves, and will be slower, less available or harder to operate
  error,    ///< a node does not start, does not stay up, or could lose what it promised
};

const char* level_name(Level level);

struct Finding {
  std::string check;  ///< its name, which stays: "disk-sync"
  Level level = Level::ok;
  std::string found;
  std::string cure;  ///< what to do; empty unless it is a warning or an error
};

using Findings = std::vector<Finding>;

}  // namespace leasehold::doctor
