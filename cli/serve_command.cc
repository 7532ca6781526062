#include <leasehold/cli/commands.h>
#include <leasehold/cli/setting_flags.h>
#include <leasehold/server/serve.h>

#include <memory>
#include <string>
#include <utility>

namespace leasehold::cli {
namespace {

constexpr const char* kServeExamples = R"(Examples:
  leasehold serve --id 1 --data-dir /var/lib/leasehold --listen 10.0.0.1:7201 \
      --peers 1=10.0.0.1:7101,2=10.0.0.2:7101,3=10.0.0.3:7101
  leasehold serve --config /etc/leasehold/leasehold.toml --id 2
A node for a group that runs; it waits until leasehold member add 4=10.0.0.4:7101 adds it:
  leasehold serve --id 4 --data-dir /var/lib/leasehold --listen 10.0.0.4:7201 \
      --peer-listen 10.0.0.4:7101 --join 10.0.0.1:7101,10.0.0.2:7101

The settings file has the same names without the dashes:
  id = 1
  data-dir = "/var/lib/leasehold"
  peers = ["1=10.0.0.1:7101", "2=10.0.0.2:7101", "3=10.0.0.3:7101"]
  lease = "1s"
A flag beats the file. Any Redis client speaks to --listen: redis-cli -p 7201 set k v)";

int serve(const ServeFlags& wanted) {
  auto settings = read_settings(wanted);
  if (!settings) return misused("serve", settings.error().message);
  settings.value().read_again = [wanted] { return read_settings(wanted); };
  return server::run_serve(settings.value());
}

}  // namespace

void add_setting(Flags& flags, const server::SettingSpec& spec, server::SettingTexts& texts) {
  const std::string name = "--" + std::string(spec.name);
  Flag flag{name.c_str(), spec.type, spec.help, spec.default_text};
  flags.add(flag, [&texts, key = std::string(spec.name)](const std::string& text) -> Result<void> {
    texts[key] = text;
    return {};
  });
}

void add_serve_settings(Flags& flags, ServeFlags& wanted) {
  flags.add({"--config", "FILE", "Settings file in TOML"}, wanted.config);
  for (const server::SettingSpec& spec : server::setting_specs()) {
    add_setting(flags, spec, wanted.texts);
  }
}

Result<server::ServeSettings> read_settings(const ServeFlags& wanted) {
  server::SettingTexts texts;
  if (!wanted.config.empty()) {
    auto file = server::read_settings_file(wanted.config);
    if (!file) return file.error();
    texts = std::move(file).value();
  }
  for (const auto& [name, text] : wanted.texts) texts[name] = text;
  return server::make_settings(texts);
}

Run add_serve(Flags& flags) {
  const auto wanted = std::make_shared<ServeFlags>();
  add_serve_settings(flags, *wanted);
  flags.set_footer(kServeExamples);
  return [wanted] { return serve(*wanted); };
}

}  // namespace leasehold::cli
