// Spans of time as people write them.
#pragma once

#include <leasehold/lease/instant.h>

#include <optional>
#include <string>

namespace leasehold::story {

/// "250us", "600ms", "12.5s", up to an hour. None: it is not one.
std::optional<lease::Duration> parse_span(const std::string& text);

}  // namespace leasehold::story
