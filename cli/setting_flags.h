// The settings of server/settings.h as flags of serve, restore, doctor and advise.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/cli/parser.h>
#include <leasehold/server/settings.h>

#include <string>

namespace leasehold::cli {

/// Adds the flag of one setting, which writes the text with the name of the setting.
void add_setting(Flags& flags, const server::SettingSpec& spec, server::SettingTexts& texts);

/// What the command line says of all settings.
struct ServeFlags {
  std::string config;  ///< a settings file; empty: none
  server::SettingTexts texts;
};

/// Adds --config and the flags of all settings, which write to `wanted`.
void add_serve_settings(Flags& flags, ServeFlags& wanted);

/// The settings, as serve has them. Errors: those of the file and of server::make_settings().
Result<server::ServeSettings> read_settings(const ServeFlags& wanted);

}  // namespace leasehold::cli
