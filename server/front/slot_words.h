// Slots of keys as people write them: "7001", or "0-99".
#pragma once

#include <leasehold/base/result.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace leasehold::server {

/// The slots of all words: ascending, each once, however often the words name it. Errors:
/// invalid_argument, as a sentence about the first word that is none.
Result<std::vector<std::uint32_t>> parse_slots(const std::vector<std::string_view>& words);

}  // namespace leasehold::server
