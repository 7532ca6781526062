#include <leasehold/server/front/slots_text.h>

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <system_error>
#include <utility>

namespace leasehold::server {
namespace {

constexpr std::size_t kNumbers = 7;

/// Takes a range off the front of `text`, with the comma behind it. None: it begins with none.
std::optional<std::array<std::uint64_t, kNumbers>> take_range(std::string_view& text) {
  std::array<std::uint64_t, kNumbers> numbers{};
  for (std::size_t i = 0; i < kNumbers; ++i) {
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), numbers.at(i));
    if (parsed.ec != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
    if (text.empty()) {
      if (i + 1 < kNumbers) return std::nullopt;
      return numbers;
    }
    if (text.front() != (i + 1 < kNumbers ? ' ' : ',')) return std::nullopt;
    text.remove_prefix(1);
  }
  return numbers;
}

bool fits(const std::array<std::uint64_t, kNumbers>& numbers) {
  const auto& [first, last, phase, epoch, other, move, keys] = numbers;
  return first <= last && last < kv::kSlots &&
         phase <= static_cast<std::uint64_t>(kv::SlotPhase::arriving) &&
         other <= std::numeric_limits<std::uint32_t>::max();
}

}  // namespace

std::string slots_text(const kv::SlotMap& slots) {
  std::string out;
  for (auto at = slots.begin(); at != slots.end();) {
    const auto& [first, record] = *at;
    std::uint32_t last = first;
    for (++at; at != slots.end() && at->first == last + 1 && at->second == record; ++at) ++last;
    fmt::format_to(std::back_inserter(out), "{}{} {} {} {} {} {} {}", out.empty() ? "" : ",", first,
                   last, static_cast<unsigned>(record.phase), record.epoch, record.other,
                   record.move, record.keys);
  }
  return out;
}

std::optional<kv::SlotMap> parse_slots(std::string_view text) {
  const std::string_view whole = text;
  kv::SlotMap slots;
  while (!text.empty()) {
    const auto numbers = take_range(text);
    if (!numbers || !fits(*numbers)) return std::nullopt;
    const auto& [first, last, phase, epoch, other, move, keys] = *numbers;
    const kv::SlotRecord record{static_cast<kv::SlotPhase>(phase), epoch,
                                static_cast<std::uint32_t>(other), move, keys};
    for (std::uint64_t slot = first; slot <= last; ++slot) {
      const auto number = static_cast<std::uint32_t>(slot);
      if (kv::slot_problem(number, record) != nullptr) return std::nullopt;
      slots.insert_or_assign(number, record);
    }
  }
  // What is above may accept several spellings; only the one of slots_text() passes here.
  if (slots_text(slots) != whole) return std::nullopt;
  return slots;
}

}  // namespace leasehold::server
