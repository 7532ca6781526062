// The settings of server/settings.h as flags of serve and restore.
#pragma once

#include <leasehold/cli/parser.h>
#include <leasehold/server/settings.h>

namespace leasehold::cli {

/// Adds the flag of one setting, which writes the text with the name of the setting.
void add_setting(Flags& flags, const server::SettingSpec& spec, server::SettingTexts& texts);

}  // namespace leasehold::cli
