// The form of a group's settings: in a membership entry, and in the message that forms a group.
#pragma once

#include <leasehold/base/coding.h>
#include <leasehold/base/result.h>
#include <leasehold/raft/settings.h>

namespace leasehold::raft {

/// Format: see the head of membership.cc. Decoding checks the invariants of GroupSettings; errors:
/// malformed, unsupported_format.
void encode_settings(const GroupSettings& settings, LittleWriter& to);
Result<GroupSettings> decode_settings(LittleReader& from);

}  // namespace leasehold::raft
