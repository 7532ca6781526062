#include <leasehold/kv/key_slot.h>
#include <leasehold/server/front/slot_words.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <optional>

namespace leasehold::server {
namespace {

std::optional<std::uint32_t> parse_slot(std::string_view word) {
  const auto number = parse_integer(word);
  if (!number || *number < 0 || *number >= kv::kSlots) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

}  // namespace

Result<std::vector<std::uint32_t>> parse_slots(const std::vector<std::string_view>& words) {
  // How many ranges begin at a slot, less those that have ended before it: the work is that of the
  // words, however long their ranges are.
  std::array<std::int64_t, kv::kSlots + 1> steps{};
  for (const std::string_view word : words) {
    const std::size_t dash = word.find('-');
    const auto first = parse_slot(word.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_slot(word.substr(dash + 1));
    if (!first || !last) {
      return invalid(
          fmt::format("{} is no slot: write one as in 7001, or a range as in 0-99, of 0 "
                      "to {}",
                      quoted(word), kv::kSlots - 1));
    }
    if (*first > *last) {
      return invalid(
          fmt::format("{} is no range of slots: the lower one comes first", quoted(word)));
    }
    ++steps[*first];
    --steps[*last + 1];
  }
  std::vector<std::uint32_t> slots;
  std::int64_t ranges = 0;
  for (std::uint32_t slot = 0; slot < kv::kSlots; ++slot) {
    ranges += steps[slot];
    if (ranges > 0) slots.push_back(slot);
  }
  return slots;
}

}  // namespace leasehold::server
