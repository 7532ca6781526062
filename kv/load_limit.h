// How much of the store one command may read while it is applied.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/raft/feature_level.h>

namespace leasehold::kv {

/// The bytes to propose for an encoded command: in LoadAtMost, with kLoadedBytesMax, if it names
/// more than kFewKeys keys. Without that, each replica would load as many values as the command
/// names, 65,536 of 16 MiB. As it is in a group whose members may not know LoadAtMost. Errors: as
/// encode_command().
Result<Bytes> limit_loads(Bytes command, raft::FeatureLevel level);

}  // namespace leasehold::kv
