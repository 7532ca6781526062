// A log entry.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/raft/types.h>

#include <cstdint>

namespace leasehold::raft {

/// Pinned: the values are on disk and on the wire.
enum class EntryKind : std::uint8_t {
  command = 0,     ///< for the state machine
  empty = 1,       ///< a term's first entry (section 8); nothing to apply
  membership = 2,  ///< see membership.h
};

struct Entry {
  LogId id;
  EntryKind kind = EntryKind::command;
  Bytes payload;

  friend bool operator==(const Entry&, const Entry&) = default;
};

}  // namespace leasehold::raft
