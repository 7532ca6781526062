// The words that a command is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::story {

std::vector<std::string> split(const std::string& text);
/// With commas between them.
std::string join(const std::vector<std::string>& words);
std::optional<std::uint64_t> parse_number(const std::string& word);
/// Parts per million: "10%", "-8.3%", "+120ppm", "0".
std::optional<std::int64_t> parse_rate(std::string word);

}  // namespace leasehold::story
