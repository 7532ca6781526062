// The bytes around a command in the log. All integers little-endian; the format is pinned.
//
//     format       1 byte    1
//     origin       8 bytes   the node whose caller proposed it; not zero
//     incarnation  8 bytes   of the origin's process
//     sequence     8 bytes   the origin's number of the proposal
//     command      the rest  empty: a read through the log
#include <leasehold/base/coding.h>
#include <leasehold/replica/command_envelope.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold::replica {

namespace {

constexpr std::uint8_t kFormat = 1;
constexpr std::size_t kHeaderBytes = 1 + 3 * 8;

}  // namespace

Bytes encode_envelope(const CommandEnvelope& envelope) {
  std::string out;
  out.reserve(kHeaderBytes + envelope.command.size());
  LittleWriter to(out);
  to.u8(kFormat);
  to.u64(envelope.origin.value());
  to.u64(envelope.incarnation.value());
  to.u64(envelope.sequence);
  to.bytes(envelope.command.view());
  return Bytes(std::move(out));
}

Result<CommandEnvelope> decode_envelope(const Bytes& payload) {
  LittleReader in(payload.view());
  const std::uint8_t format = in.u8();
  if (!in.ok()) {
    return Error{ErrorCode::malformed, "command envelope: empty; expected at least its header"};
  }
  if (format != kFormat) {
    return Error{ErrorCode::unsupported_format,
                 "command envelope: format " + std::to_string(format) +
                     ", this build knows format " + std::to_string(kFormat) +
                     "; run a build that knows it"};
  }
  CommandEnvelope envelope;
  envelope.origin = raft::NodeId(in.u64());
  envelope.incarnation = raft::Incarnation(in.u64());
  envelope.sequence = in.u64();
  if (!in.ok()) {
    return Error{ErrorCode::malformed, "command envelope: " + std::to_string(payload.size()) +
                                           " bytes, the header alone has " +
                                           std::to_string(kHeaderBytes)};
  }
  if (envelope.origin == raft::kNobody) {
    return Error{ErrorCode::malformed, "command envelope: origin 0 is no node"};
  }
  envelope.command = payload.slice(kHeaderBytes);
  return envelope;
}

}  // namespace leasehold::replica
