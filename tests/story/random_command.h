// Random commands of scenario files, for tests.
#pragma once

#include <leasehold/base/random.h>

#include <cstdint>
#include <string>

namespace leasehold::story {

/// The nodes of the random commands.
struct Cast {
  std::uint64_t nodes = 3;  ///< 1 to 9
  /// Also messages that no node sent, clocks beyond the bound, and facts that may not hold.
  bool lies = false;
  std::uint64_t groups = 1;  ///< 1 to 3
};

/// The first command of a scenario: a group, with settings of its own or without.
std::string random_group(Random& random);

/// A command that may follow it. A story may refuse it: the node is down, there is no such message.
std::string random_command(Random& random, const Cast& cast);

}  // namespace leasehold::story
