#include <leasehold/bench/histogram.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

namespace leasehold::bench {
namespace {

// A value keeps its 11 highest bits: 1024 slots for each doubling, a relative width of 1/1024.
constexpr unsigned kKeptBits = 11;
constexpr std::uint64_t kExactBelow = 1ULL << kKeptBits;
constexpr std::uint64_t kSlotsPerDoubling = kExactBelow / 2;
constexpr int kFormat = 1;

std::size_t slot_of(std::uint64_t value) {
  if (value < kExactBelow) return value;
  const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - kKeptBits;
  return kExactBelow + (shift - 1) * kSlotsPerDoubling + (value >> shift) - kSlotsPerDoubling;
}

std::uint64_t largest_in_slot(std::size_t slot) {
  if (slot < kExactBelow) return slot;
  const std::uint64_t above = slot - kExactBelow;
  const unsigned shift = static_cast<unsigned>(above / kSlotsPerDoubling) + 1;
  const std::uint64_t kept = above % kSlotsPerDoubling + kSlotsPerDoubling;
  return ((kept + 1) << shift) - 1;
}

Error malformed(const std::string& what) {
  return Error{ErrorCode::malformed,
               fmt::format("not a histogram: {}; give a text that to_json() wrote", what)};
}

}  // namespace

Histogram::Histogram() : slots_(slot_of(kLargest) + 1) {}

void Histogram::record(std::uint64_t value) {
  if (value > kLargest) {
    value = kLargest;
    ++clamped_;
  }
  ++slots_[slot_of(value)];
  ++count_;
  sum_ += value;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
}

void Histogram::merge(const Histogram& other) {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) slots_[slot] += other.slots_[slot];
  count_ += other.count_;
  clamped_ += other.clamped_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

void Histogram::clear() {
  *this = Histogram();
}

double Histogram::mean() const {
  return count_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(count_);
}

std::uint64_t Histogram::quantile(double q) const {
  if (count_ == 0) return 0;
  const double wanted = std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(count_));
  const auto rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(wanted));
  std::uint64_t seen = 0;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    seen += slots_[slot];
    if (seen >= rank) return std::clamp(largest_in_slot(slot), min_, max_);
  }
  return max_;
}

std::string Histogram::to_json(std::string_view unit) const {
  nlohmann::json slots = nlohmann::json::array();
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot] != 0) slots.push_back({largest_in_slot(slot), slots_[slot]});
  }
  const nlohmann::json text = {
      {"format", kFormat},        {"unit", unit},         {"count", count_},
      {"clamped", clamped_},      {"sum", sum_},          {"min", min()},
      {"p50", quantile(0.5)},     {"p90", quantile(0.9)}, {"p99", quantile(0.99)},
      {"p99.9", quantile(0.999)}, {"max", max_},          {"slots", std::move(slots)}};
  return text.dump();
}

Result<Histogram> Histogram::from_json(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return malformed("no JSON object");
  const auto number = [&json](const char* key) -> std::uint64_t {
    const auto found = json.find(key);
    return found != json.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
  };
  if (number("format") != kFormat) {
    return Error{ErrorCode::unsupported_format,
                 fmt::format("histogram format {}, this build reads format 1", number("format"))};
  }
  const auto slots = json.find("slots");
  if (slots == json.end() || !slots->is_array()) return malformed("no list `slots`");
  Histogram histogram;
  for (const nlohmann::json& pair : *slots) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_unsigned() ||
        !pair[1].is_number_unsigned() || pair[0].get<std::uint64_t>() > kLargest) {
      return malformed("a slot is not [value, count]");
    }
    histogram.slots_[slot_of(pair[0].get<std::uint64_t>())] += pair[1].get<std::uint64_t>();
    histogram.count_ += pair[1].get<std::uint64_t>();
  }
  if (histogram.count_ != number("count")) return malformed("`count` is not the sum of the slots");
  histogram.clamped_ = number("clamped");
  histogram.sum_ = number("sum");
  histogram.max_ = number("max");
  if (histogram.count_ != 0) histogram.min_ = number("min");
  // quantile() clamps to these two.
  if (histogram.count_ != 0 && histogram.min_ > histogram.max_) {
    return malformed("`min` is above `max`");
  }
  return histogram;
}

}  // namespace leasehold::bench
