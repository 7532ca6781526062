#include <leasehold/client/holder_record.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

namespace leasehold::client {
namespace {

using lease::Duration;
using Json = nlohmann::ordered_json;

/// Between two tries.
constexpr Duration kAgain = std::chrono::milliseconds(50);
/// Of the numbers in a record; a count stays there.
constexpr std::uint64_t kNumberMax = INT64_MAX;
constexpr Duration kSecond = std::chrono::seconds(1);

constexpr const char* kHolder = "holderIdentity";
constexpr const char* kDuration = "leaseDurationSeconds";
constexpr const char* kAcquired = "acquireTime";
constexpr const char* kTransitions = "leaseTransitions";
constexpr const char* kToken = "fencingToken";

/// 10, 0.5.
Json seconds_json(Duration duration) {
  if (duration % kSecond == Duration(0)) return duration / kSecond;
  return std::chrono::duration<double>(duration).count();
}

/// Whole microseconds, which a double holds for ten years. None: no time to live of a lease.
std::optional<Duration> parse_seconds(const Json& field) {
  if (!field.is_number()) return std::nullopt;
  const auto seconds = field.get<double>();
  if (!(seconds >= 0) || seconds > static_cast<double>(grant::kLeaseTtlMax / kSecond)) {
    return std::nullopt;
  }
  const std::int64_t microseconds = std::llround(seconds * 1e6);
  if (static_cast<double>(microseconds) / 1e6 != seconds) return std::nullopt;
  return std::chrono::microseconds(microseconds);
}

/// None: no whole number up to kNumberMax.
std::optional<std::uint64_t> parse_number(const Json& field) {
  if (!field.is_number_unsigned()) return std::nullopt;
  const auto number = field.get<std::uint64_t>();
  return number > kNumberMax ? std::nullopt : std::optional(number);
}

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(Json(text).dump());
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

/// RFC 3339: 2026-11-24T09:30:00.000250Z.
std::string wall_time() {
  using std::chrono::floor;
  const auto now = floor<std::chrono::microseconds>(std::chrono::system_clock::now());
  const auto day = floor<std::chrono::days>(now);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(now - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count(),
                     time.subseconds().count());
}

Result<HolderRecord> record_of(const KeyService::Row& row) {
  auto record = HolderRecord::parse(row.value);
  if (record) return record;
  return Error{ErrorCode::invalid_argument,
               fmt::format("the key '{}' has a value that is no record of a holder ({}): name "
                           "another key, or delete it",
                           row.key, record.error().message)};
}

bool may_pass(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::timed_out;
}

/// Reads and writes once. None: the key was written in between.
Result<std::optional<HolderRecord>> try_once(KeyService& keys, const std::string& key,
                                             HolderRecord own, Duration timeout) {
  const auto row = keys.find(key, timeout);
  if (!row) return row.error();
  std::uint64_t mod_revision = 0;
  if (row.value()) {
    auto before = record_of(*row.value());
    if (!before) return before.error();
    HolderRecord& old = before.value();
    // The answer to an earlier try was lost. So this holder is not counted twice.
    if (old.token == own.token && old.holder == own.holder) return std::optional(std::move(old));
    if (old.token >= own.token) {
      return Error{ErrorCode::in_use,
                   fmt::format("the key '{}' has the record of '{}' with the token {}, and this "
                               "holder has {}: the lease is lost",
                               key, old.holder, old.token.value(), own.token.value())};
    }
    mod_revision = row.value()->mod_revision;
    const bool passed = old.holder != own.holder;
    own.transitions = old.transitions + (passed && old.transitions < kNumberMax ? 1 : 0);
  }
  const auto written = keys.replace({key, own.json(), mod_revision, own.token}, timeout);
  if (!written) return written.error();
  if (!written.value()) return std::optional<HolderRecord>();
  return std::optional(std::move(own));
}

}  // namespace

std::string HolderRecord::json() const {
  const Json object = {{kHolder, holder},
                       {kDuration, seconds_json(duration)},
                       {kAcquired, acquired},
                       {kTransitions, transitions},
                       {kToken, token.value()}};
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<HolderRecord> HolderRecord::parse(std::string_view json) {
  const Json object = Json::parse(json, nullptr, false);
  if (!object.is_object()) return Error{ErrorCode::malformed, "not a JSON object"};
  const auto wrong = [](const char* field) {
    return Error{ErrorCode::malformed, fmt::format("no {} as it has to be", field)};
  };
  HolderRecord record;
  for (const auto& [name, text] :
       {std::pair(kHolder, &record.holder), std::pair(kAcquired, &record.acquired)}) {
    const Json field = object.value(name, Json());
    if (!field.is_string()) return wrong(name);
    *text = field.get<std::string>();
  }
  const auto duration = parse_seconds(object.value(kDuration, Json()));
  if (!duration) return wrong(kDuration);
  record.duration = *duration;
  const auto transitions = parse_number(object.value(kTransitions, Json()));
  if (!transitions) return wrong(kTransitions);
  record.transitions = *transitions;
  const auto token = parse_number(object.value(kToken, Json()));
  if (!token) return wrong(kToken);
  record.token = grant::FencingToken(*token);
  return record;
}

Result<HolderRecord> record_holder(KeyService& keys, const lease::Clock& clock,
                                   const LeaseHolder::Options& options, const LeaseHolder& holder,
                                   const std::string& key) {
  if (key.empty() || !is_utf8(options.holder)) {
    return Error{ErrorCode::invalid_argument,
                 "the record of a holder needs a key, and a holder's name in UTF-8"};
  }
  const HolderRecord own{options.holder, options.timing.ttl, wall_time(), 0, holder.token()};
  const lease::HolderInstant until = holder.deadline();
  std::string trouble = "other clients keep writing the key";
  for (;;) {
    auto written = try_once(keys, key, own, options.timing.max_round_trip);
    if (written && written.value()) return std::move(*written.value());
    if (!written && !may_pass(written.error().code)) return written.error();
    if (!written) trouble = written.error().message;
    if (options.give_up()) return Error{ErrorCode::stopped, "given up: " + trouble};
    if (!holder.may_act() || clock.holder_now() >= until) {
      return Error{ErrorCode::timed_out,
                   fmt::format("the record of the holder was not written in time: {}", trouble)};
    }
    std::this_thread::sleep_for(kAgain);
  }
}

Result<std::optional<HolderRecord>> read_holder_record(KeyService& keys, const std::string& key,
                                                       Duration timeout) {
  const auto row = keys.find(key, timeout);
  if (!row) return row.error();
  if (!row.value()) return std::optional<HolderRecord>();
  auto record = record_of(*row.value());
  if (!record) return record.error();
  return std::optional(std::move(record).value());
}

}  // namespace leasehold::client
