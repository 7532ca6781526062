#include <leasehold/server/front/key_times.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace leasehold::server {
namespace {

using std::chrono::milliseconds;

struct Option {
  std::string_view name;
  TimeUnit unit;
};
constexpr Option kOptions[] = {
    {"ex", {true, false}}, {"px", {false, false}}, {"exat", {true, true}}, {"pxat", {false, true}}};

/// A number in a reply that was made here.
std::int64_t integer_at(const kv::ArrayReply& array, std::size_t at) {
  if (at >= array.items.size()) return 0;
  const auto item = kv::decode_reply(array.items[at]);
  const auto* number = item ? std::get_if<kv::Integer>(&item.value()) : nullptr;
  return number == nullptr ? 0 : number->value;
}

}  // namespace

std::string parse_key_time(std::string_view word, TimeUnit unit, std::string_view command,
                           bool positive, GivenTime& time) {
  const auto number = parse_integer(word);
  if (!number) return kNotAnInteger;
  const std::string invalid = fmt::format("ERR invalid expire time in '{}' command", command);
  using Limits = std::numeric_limits<std::int64_t>;
  const std::int64_t scale = unit.seconds ? 1000 : 1;
  if (positive && *number <= 0) return invalid;
  if (*number > Limits::max() / scale || *number < Limits::min() / scale) return invalid;
  const std::int64_t given = *number * scale;
  const std::int64_t now = wall_now() / milliseconds(1);
  if (!unit.instant && given > Limits::max() - now) return invalid;
  time = GivenTime();
  if (given <= 0) return {};
  const std::int64_t left = unit.instant ? given - now : given;
  if (left <= 0) return {};
  if (left > grant::kLeaseTtlMax / milliseconds(1)) {
    return invalid + ": a key that ends by itself lives for ten years at most";
  }
  time.ttl = milliseconds(left);
  time.end_ms = unit.instant ? given : now + given;
  return {};
}

bool TimeOption::take(const Arguments& args, std::size_t& at) {
  if (at + 1 >= args.size()) return false;
  for (const Option& option : kOptions) {
    if (!equals_ignoring_case(args[at], option.name)) continue;
    if (!name_.empty() && name_ != option.name) return false;
    name_ = option.name;
    unit_ = option.unit;
    number_ = args[++at];
    return true;
  }
  return false;
}

std::string TimeOption::parse(std::string_view command, GivenTime& time) const {
  return parse_key_time(number_, unit_, command, true, time);
}

void forget_end(kv::Operation& operation, raft::FeatureLevel level) {
  if (level >= raft::kSettingsLevel) return;
  if (auto* const set = std::get_if<kv::Set>(&operation)) set->end_ms = 0;
  if (auto* const mset = std::get_if<kv::MSet>(&operation)) mset->end_ms = 0;
  if (auto* const expire = std::get_if<kv::ExpireKey>(&operation)) expire->end_ms = 0;
}

std::optional<std::int64_t> said_end(const kv::Reply& found) {
  const auto* array = std::get_if<kv::ArrayReply>(&found);
  if (array == nullptr || array->items.size() < 4) return std::nullopt;
  return integer_at(*array, 3);
}

Result<void> see_time(kv::Operation& operation, const kv::Store& store, kv::LeaseKeeper* keeper) {
  auto* const expire = std::get_if<kv::ExpireKey>(&operation);
  auto* const copy = std::get_if<kv::Copy>(&operation);
  const bool looks = copy != nullptr || (expire != nullptr && expire->looks_at_time());
  if (!looks || keeper == nullptr) return {};
  const auto value = store.get(copy != nullptr ? copy->from : expire->key);
  if (!value) return value.error();
  if (!value.value() || value.value()->lease == grant::LeaseId(0)) return {};
  (copy != nullptr ? copy->seen : expire->seen) = keeper->seen(value.value()->lease);
  return {};
}

std::optional<std::int64_t> milliseconds_left(const kv::Reply& found, kv::LeaseKeeper* keeper) {
  if (std::holds_alternative<kv::Nil>(found)) return std::nullopt;
  const auto* array = std::get_if<kv::ArrayReply>(&found);
  if (array == nullptr) return -1;
  const grant::LeaseId id(static_cast<std::uint64_t>(integer_at(*array, 0)));
  const auto stamp = static_cast<std::uint64_t>(integer_at(*array, 1));
  lease::Duration left(integer_at(*array, 2));
  if (keeper != nullptr) {
    const auto known = keeper->left(id);
    // With another stamp, or none, the key has got another time since: `left` is the whole of it.
    if (known && known.value() && known.value()->stamp == stamp) left = known.value()->left;
  }
  left = std::max(left, lease::Duration(0));
  return (left + milliseconds(1) - lease::Duration(1)) / milliseconds(1);
}

std::optional<LeaseLeft> lease_left(const kv::ArrayReply& info, kv::LeaseKeeper* keeper) {
  if (keeper == nullptr) return std::nullopt;
  const auto known = keeper->left(grant::LeaseId(static_cast<std::uint64_t>(integer_at(info, 0))));
  if (!known || !known.value() || !known.value()->leads) return std::nullopt;
  const std::int64_t left = known.value()->left / milliseconds(1);
  if (integer_at(info, 9) != 0) return LeaseLeft{left, std::nullopt};
  return LeaseLeft{left, integer_at(info, 2) - left};
}

}  // namespace leasehold::server
