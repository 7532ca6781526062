#include <leasehold/base/scaled.h>
#include <leasehold/server/front/duration.h>
#include <leasehold/server/front/settings_words.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <optional>

namespace leasehold::server {
namespace {

struct Length {
  const char* name;
  lease::Duration lease::Timing::*of;
  std::optional<lease::Duration> raft::SettingsEdit::*edit;
};
constexpr Length kLengths[] = {
    {"lease", &lease::Timing::lease, &raft::SettingsEdit::lease},
    {"heartbeat", &lease::Timing::heartbeat, &raft::SettingsEdit::heartbeat},
    {"max-round-trip", &lease::Timing::max_round_trip, &raft::SettingsEdit::max_round_trip},
    {"margin", &lease::Timing::margin, &raft::SettingsEdit::margin},
    {"election-timeout", &lease::Timing::election_timeout, &raft::SettingsEdit::election_timeout},
};

/// 100000 as "0.1".
std::string fraction(std::int64_t ppm) {
  std::string digits = fmt::format("{}.{:06}", ppm / kMillion, ppm % kMillion);
  while (digits.back() == '0') digits.pop_back();
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

Result<void> read(const SettingWord& word, raft::SettingsEdit& edit) {
  for (const Length& length : kLengths) {
    if (word.name != length.name) continue;
    const auto duration = parse_duration(word.value);
    if (!duration) return invalid(fmt::format("{}: {}", word.name, duration.error().message));
    edit.*length.edit = duration.value();
    return {};
  }
  if (word.name == "max-clock-drift") {
    edit.max_clock_drift_ppm = parse_scaled(word.value, kMillion);
    if (edit.max_clock_drift_ppm) return {};
    return invalid(
        fmt::format("{}: '{}' is not a fraction with at most 6 decimals, as in 0.1 for "
                    "10 %",
                    word.name, word.value));
  }
  if (word.name == "lease-reads") {
    if (word.value != "on" && word.value != "off") {
      return invalid(fmt::format("{}: '{}' is neither on nor off", word.name, word.value));
    }
    edit.lease_reads = word.value == "on";
    return {};
  }
  return invalid(
      fmt::format("'{}' is no setting of a group; these are: lease, heartbeat, "
                  "max-clock-drift, max-round-trip, margin, election-timeout, lease-reads",
                  word.name));
}

}  // namespace

std::vector<SettingWord> settings_words(const raft::GroupSettings& settings) {
  std::vector<SettingWord> words;
  for (const Length& length : kLengths) {
    words.push_back({length.name, format_duration(settings.timing.*length.of)});
    if (length.of != &lease::Timing::heartbeat) continue;
    words.push_back({"max-clock-drift", fraction(settings.timing.max_clock_drift_ppm)});
  }
  words.push_back({"lease-reads", settings.lease_reads ? "on" : "off"});
  return words;
}

Result<raft::SettingsEdit> parse_settings(const std::vector<SettingWord>& words) {
  raft::SettingsEdit edit;
  for (auto word = words.begin(); word != words.end(); ++word) {
    for (auto other = words.begin(); other != word; ++other) {
      if (other->name == word->name) return invalid(fmt::format("'{}' is given twice", word->name));
    }
    if (const auto taken = read(*word, edit); !taken) return taken.error();
  }
  return edit;
}

Result<raft::GroupSettings> settings_said(
    const std::function<std::optional<std::string>(const std::string& name)>& said) {
  std::vector<SettingWord> words = settings_words({});
  for (SettingWord& word : words) {
    auto value = said(word.name);
    if (!value) {
      return Error{ErrorCode::malformed,
                   fmt::format("the leader's answer has no '{}' that this build can read: ask with "
                               "the leader's build",
                               word.name)};
    }
    word.value = std::move(*value);
  }
  const auto edit = parse_settings(words);
  if (!edit) return edit.error();
  const raft::GroupSettings settings = edit.value().applied_to({});
  if (const auto valid = settings.timing.validate(); !valid) return valid.error();
  return settings;
}

std::string usable_text(const lease::Timing& timing) {
  return fmt::format("U = D * (1 - rho) / (1 + rho) - sigma = {} * (1 - {}) / (1 + {}) - {} = {}",
                     format_duration(timing.lease), fraction(timing.max_clock_drift_ppm),
                     fraction(timing.max_clock_drift_ppm), format_duration(timing.margin),
                     format_duration(timing.usable(timing.lease)));
}

}  // namespace leasehold::server
