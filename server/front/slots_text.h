// The records of slots as a line of text, in the answer to LEASEHOLD BACKUP.
#pragma once

#include <leasehold/kv/slots.h>

#include <optional>
#include <string>
#include <string_view>

namespace leasehold::server {

/// Each range of slots with equal records as "first last phase epoch other move keys", with commas
/// between them: a move has many slots, and mostly neighbours.
std::string slots_text(const kv::SlotMap& slots);
/// Accepts exactly what slots_text() makes. None: it is not that.
std::optional<kv::SlotMap> parse_slots(std::string_view text);

}  // namespace leasehold::server
