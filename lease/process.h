// One life of a node's directory, and what its end proves.
#pragma once

#include <leasehold/base/strong.h>

#include <cstdint>

namespace leasehold::lease {

/// One start of a process on its directory; rises with each start.
using Incarnation = StrongInt<struct IncarnationTag>;

/// One life of a directory: from a start on it to the end of the process. The directory's lock lets
/// in one process at a time, so a node that knows of a later one knows that this one has ended.
struct Process {
  Incarnation incarnation{};  ///< zero: not known, so it proves nothing and nothing proves its end
  /// Where the directory lies. A copy of a directory has the same uuid, and a lock of its own: it
  /// lies at another place, and says nothing about the processes here.
  std::uint64_t place = 0;
  friend bool operator==(const Process&, const Process&) = default;
};

/// Whether the end of `known` shows that `process`, of the same directory, has ended too.
constexpr bool ended_by(const Process& process, const Process& known) {
  return process.place == known.place && process.incarnation.value() != 0 &&
         process.incarnation <= known.incarnation;
}

}  // namespace leasehold::lease
