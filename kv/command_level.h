// Which level of the group a command needs.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/kv/command.h>
#include <leasehold/raft/feature_level.h>

#include <string>
#include <string_view>

namespace leasehold::kv {

/// The lowest level at which every member can execute an encoded command. Of bytes that this build
/// cannot read: kNewestLevel.
raft::FeatureLevel level_needed(std::string_view command);

/// Why a command may not be proposed in a group of this level; empty: it may. Costs nothing at the
/// newest level.
std::string refusal_below(std::string_view command, raft::FeatureLevel level);

/// The bytes to propose in a group of this level. Errors: those of encode_command();
/// invalid_argument, if the level is too low.
Result<Bytes> encode_for(const Command& command, raft::FeatureLevel level);

}  // namespace leasehold::kv
