// What surrounds a command in the log: which node proposed it. So the origin finds it in its own
// applied log and answers its caller from there, whichever leader appended it.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/raft/types.h>

#include <cstdint>

namespace leasehold::replica {

struct CommandEnvelope {
  raft::NodeId origin;
  raft::Incarnation incarnation;
  std::uint64_t sequence = 0;
  /// Empty: a read through the log; the state machine does not see it.
  Bytes command;
};

Bytes encode_envelope(const CommandEnvelope& envelope);
/// Errors: malformed, unsupported_format. `command` shares the allocation of `payload`.
Result<CommandEnvelope> decode_envelope(const Bytes& payload);

}  // namespace leasehold::replica
