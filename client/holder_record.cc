#include <leasehold/client/flat_json.h>
#include <leasehold/client/holder_record.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

namespace leasehold::client {
namespace {

using lease::Duration;

/// Between two tries.
constexpr Duration kAgain = std::chrono::milliseconds(50);
constexpr Duration kSecond = std::chrono::seconds(1);
constexpr std::size_t kFractionDigits = 9;

constexpr const char* kHolder = "holderIdentity";
constexpr const char* kDuration = "leaseDurationSeconds";
constexpr const char* kAcquired = "acquireTime";
constexpr const char* kTransitions = "leaseTransitions";
constexpr const char* kToken = "fencingToken";

/// "10", "0.5": without zeros at the end.
std::string seconds_text(Duration duration) {
  std::string text = fmt::format("{}.{:09}", duration / kSecond, (duration % kSecond).count());
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

/// The only forms are those of seconds_text(). None: the number has another one, or is above ten
/// years.
std::optional<Duration> parse_seconds(std::string_view text) {
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string fraction(text.substr(std::min(point + 1, text.size())));
  if (fraction.size() > kFractionDigits || (point < text.size() && fraction.empty())) return {};
  fraction.resize(kFractionDigits, '0');
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  const char* const end = text.data() + point;
  const auto whole = std::from_chars(text.data(), end, seconds);
  const auto rest =
      std::from_chars(fraction.data(), fraction.data() + fraction.size(), nanoseconds);
  if (whole.ec != std::errc() || whole.ptr != end || rest.ec != std::errc() ||
      rest.ptr != fraction.data() + fraction.size() || seconds < 0 || nanoseconds < 0 ||
      seconds > grant::kLeaseTtlMax / kSecond) {
    return {};
  }
  return seconds * kSecond + std::chrono::nanoseconds(nanoseconds);
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
    own.transitions = old.transitions + (old.holder == own.holder ? 0 : 1);
  }
  const auto written = keys.replace({key, own.json(), mod_revision, own.token}, timeout);
  if (!written) return written.error();
  if (!written.value()) return std::optional<HolderRecord>();
  return std::optional(std::move(own));
}

}  // namespace

std::string HolderRecord::json() const {
  std::string out = fmt::format("{{\"{}\":", kHolder);
  append_json_text(out, holder);
  fmt::format_to(std::back_inserter(out), ",\"{}\":{},\"{}\":", kDuration, seconds_text(duration),
                 kAcquired);
  append_json_text(out, acquired);
  fmt::format_to(std::back_inserter(out), ",\"{}\":{},\"{}\":{}}}", kTransitions, transitions,
                 kToken, token.value());
  return out;
}

Result<HolderRecord> HolderRecord::parse(std::string_view json) {
  auto parsed = parse_flat_json(json);
  if (!parsed) return parsed.error();
  auto& fields = parsed.value();
  const auto wrong = [](const char* field) {
    return Error{ErrorCode::malformed, fmt::format("no {} as it has to be", field)};
  };
  HolderRecord record;
  for (const auto& [name, text] :
       {std::pair(kHolder, &record.holder), std::pair(kAcquired, &record.acquired)}) {
    const auto field = fields.find(name);
    if (field == fields.end() || !field->second.is_text) return wrong(name);
    *text = field->second.text;
  }
  const FlatJsonValue& duration = fields[kDuration];
  const auto seconds = duration.is_text ? std::nullopt : parse_seconds(duration.text);
  if (!seconds) return wrong(kDuration);
  record.duration = *seconds;
  const auto transitions = fields[kTransitions].whole();
  if (!transitions) return wrong(kTransitions);
  record.transitions = *transitions;
  const auto token = fields[kToken].whole();
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
