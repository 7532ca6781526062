// The settings of a group as people write them: the names of the flags of `leasehold serve`.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/settings.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::server {

/// One of the settings: lease, heartbeat, max-clock-drift, max-round-trip, margin,
/// election-timeout, lease-reads.
struct SettingWord {
  std::string name;
  std::string value;
};

/// Each setting with its value, in the order above; what it prints is read back as the same.
std::vector<SettingWord> settings_words(const raft::GroupSettings& settings);

/// What is to be different. Errors: invalid_argument; the message says what is allowed.
Result<raft::SettingsEdit> parse_settings(const std::vector<SettingWord>& words);

/// The settings that a server tells: `said` gives what it says of a name. Whatever that is, a set
/// that no group can have is an error. Errors: malformed (a name is missing), invalid_argument.
Result<raft::GroupSettings> settings_said(
    const std::function<std::optional<std::string>(const std::string& name)>& said);

/// "U = D * (1 - rho) / (1 + rho) - sigma = 808.181 ms", with the numbers.
std::string usable_text(const lease::Timing& timing);

}  // namespace leasehold::server
