// The one gateway between peer bytes and trusted values.
//
// Payloads (entries, commands) never pass through protobuf and are never copied when they are
// large: the encoder queues them next to their frame, the decoder returns slices of the one
// received buffer.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/wire/frame.h>
#include <leasehold/wire/peer_message.h>

#include <cstddef>
#include <cstdint>

namespace leasehold::wire {

/// The payload bytes of `message`; its frame is longer by little more than a header.
std::size_t payload_bytes(const wire::PeerMessage& message);

/// Whether wire version `version` has this kind of message.
bool speaks(std::uint16_t version, const wire::PeerMessage& message);

/// Appends the frame of `message` to `out` and returns its length. Asserts the invariants of
/// check.h: a message that breaks one is a bug of this node. Error: overloaded, nothing is
/// appended: the frame would be above `frame_bytes_max`. `version`: the wire version of the
/// connection, one that this build speaks and that speaks() of the message.
Result<std::size_t> encode_message(const wire::PeerMessage& message, std::size_t frame_bytes_max,
                                   SendBuffer& out, std::uint16_t version = kWireVersionMax);

/// Reads the message of `frame`, whose kind is `message`. What comes back satisfies every invariant
/// of check.h; its payloads share `frame.payload`. Error: malformed.
Result<wire::PeerMessage> decode_message(const Frame& frame);

}  // namespace leasehold::wire
