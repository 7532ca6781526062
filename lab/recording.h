// A trace inside a copy of the lab's page, which then shows it and simulates nothing.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/story/record.h>

#include <cstddef>
#include <string>
#include <vector>

namespace leasehold::lab {

/// Of a trace that a page holds. A browser reads all of it before it draws.
inline constexpr std::size_t kRecordingRecordsMax = 250'000;
inline constexpr std::size_t kRecordingBytesMax = 48U << 20U;
/// Replicas, of all groups: each has a lane.
inline constexpr std::size_t kRecordingLanesMax = 16;

/// `page` is the page of the lab as `make lab` builds it. Errors: malformed if it is no such page,
/// or holds a trace already, or was made for another version of traces; invalid_argument if the
/// records are more than a page can show. Nothing in the records ends or begins an element of the
/// page.
Result<std::string> page_with_recording(const std::string& page,
                                        const std::vector<story::Record>& records);

}  // namespace leasehold::lab
