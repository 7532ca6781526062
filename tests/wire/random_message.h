// Random messages that satisfy every invariant of wire/check.h, for tests.
#pragma once

#include <leasehold/base/random.h>
#include <leasehold/wire/peer_message.h>

namespace leasehold::wire {

inline constexpr std::uint64_t kMessageKinds = 16;

/// A message of kind 0 .. kMessageKinds - 1. Small numbers are more likely than large ones; every
/// optional part is present often enough, and missing often enough.
wire::PeerMessage random_message(Random& random, std::uint64_t kind);
wire::PeerMessage random_message(Random& random);

}  // namespace leasehold::wire
