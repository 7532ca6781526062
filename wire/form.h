// Converts between the messages of peers and their protobuf forms. Not for other rooms.
//
// form_write.cc writes a form, form_read.cc reads one and refuses forms that no build writes;
// codec.cc makes frames of forms.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/wire/peer_message.h>

#include <cstdint>
#include <string>
#include <utility>

namespace leasehold::wire {

namespace pb {
class Message;
}  // namespace pb

/// Writes everything of a payload that wire version `version` has a field for, except the bytes of
/// the frame's payload part.
void write_form(const Payload& payload, std::uint16_t version, pb::Message& form);
/// `payload`: the payload part of the frame. Errors: malformed.
Result<void> read_form(const pb::Message& form, const Bytes& payload, std::uint16_t version,
                       Payload& to);

inline Error malformed(std::string what) {
  return Error{ErrorCode::malformed, "malformed message: " + std::move(what)};
}

}  // namespace leasehold::wire
