// What all members of a group can read.
#pragma once

#include <leasehold/raft/membership.h>

#include <cstdint>

namespace leasehold::raft {

/// Builds of different versions may be members of one group. The group's level says what each of
/// them can read, and so what may stand in its log; docs/versions.md lists the levels. It follows
/// from the newest membership that is committed, and never falls: an entry of a level stands behind
/// the entry that raised it.
using FeatureLevel = std::uint8_t;

/// Of a group that was formed by release 0.1.
inline constexpr FeatureLevel kOldestLevel = 1;
/// The group has agreed settings.
inline constexpr FeatureLevel kSettingsLevel = 2;
/// The highest one that this build reads and writes.
inline constexpr FeatureLevel kNewestLevel = kSettingsLevel;

/// `membership` is committed. A build that does not know settings refuses an entry that has some,
/// and is not made a member of a group that has.
inline FeatureLevel level_of(const Membership& membership) {
  return membership.settings ? kSettingsLevel : kOldestLevel;
}

}  // namespace leasehold::raft
