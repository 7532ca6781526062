// The bytes around a command in the log. All integers little-endian; the format is pinned.
//
//     format       1 byte    1
//     origin       8 bytes   the node whose caller proposed it; not zero
//     incarnation  8 bytes   of the origin's process
//     sequence     8 bytes   the origin's number of the proposal
//     command      the rest  empty: a read through the log
#include <leasehold/replica/command_envelope.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold::replica {

namespace {

constexpr char kFormat = 1;
constexpr std::size_t kHeaderBytes = 1 + 3 * 8;

void put_u64(std::string& out, std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(value >> shift)));
  }
}

std::uint64_t get_u64(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) {
    value = (value << 8U) | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

}  // namespace

Bytes encode_envelope(const CommandEnvelope& envelope) {
  std::string out;
  out.reserve(kHeaderBytes + envelope.command.size());
  out.push_back(kFormat);
  put_u64(out, envelope.origin.value());
  put_u64(out, envelope.incarnation.value());
  put_u64(out, envelope.sequence);
  out.append(envelope.command.view());
  return Bytes(std::move(out));
}

Result<CommandEnvelope> decode_envelope(const Bytes& payload) {
  const std::string_view bytes = payload.view();
  if (bytes.empty()) {
    return Error{ErrorCode::malformed, "command envelope: empty; expected at least its header"};
  }
  if (bytes[0] != kFormat) {
    return Error{
        ErrorCode::unsupported_format,
        "command envelope: format " + std::to_string(static_cast<unsigned char>(bytes[0])) +
            ", this build knows format " + std::to_string(kFormat) + "; run a build that knows it"};
  }
  if (bytes.size() < kHeaderBytes) {
    return Error{ErrorCode::malformed, "command envelope: " + std::to_string(bytes.size()) +
                                           " bytes, the header alone has " +
                                           std::to_string(kHeaderBytes)};
  }
  CommandEnvelope envelope;
  envelope.origin = raft::NodeId(get_u64(bytes, 1));
  envelope.incarnation = raft::Incarnation(get_u64(bytes, 9));
  envelope.sequence = get_u64(bytes, 17);
  if (envelope.origin == raft::kNobody) {
    return Error{ErrorCode::malformed, "command envelope: origin 0 is no node"};
  }
  envelope.command = payload.slice(kHeaderBytes);
  return envelope;
}

}  // namespace leasehold::replica
