// Reads the settings file. Apart from settings.cc because toml++ takes seconds to compile.
#include <leasehold/server/front/words.h>
#include <leasehold/server/settings.h>

// Errors are results here, not exceptions.
#define TOML_EXCEPTIONS 0
// A file from outside must not abort the process either. Where a file can reach an assertion of
// toml++ (a table whose name begins with '?'), toml++ continues and refuses the file; with NDEBUG
// it would declare that place unreachable to the compiler.
#undef NDEBUG
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <sstream>

namespace leasehold::server {
namespace {

/// A value of the file as the text that the flag would have.
Result<std::string> text_of(const std::string& key, const toml::node& value) {
  if (const auto* text = value.as_string()) return text->get();
  if (const auto* number = value.as_integer()) return std::to_string(number->get());
  if (value.is_boolean()) return std::string(value.as_boolean()->get() ? "on" : "off");
  if (value.is_floating_point()) {
    char digits[64];
    const auto end = std::to_chars(digits, digits + sizeof(digits),
                                   value.as_floating_point()->get(), std::chars_format::fixed);
    return std::string(digits, end.ptr);
  }
  if (const auto* list = value.as_array()) {
    std::string joined;
    for (const toml::node& item : *list) {
      const auto* text = item.as_string();
      if (text == nullptr) return invalid(key + ": a list holds strings only");
      joined += (joined.empty() ? "" : ",") + text->get();
    }
    return joined;
  }
  return invalid(key + ": expected a string, a number, on/off or a list of strings");
}

}  // namespace

Result<SettingTexts> read_settings_file(const std::string& path) {
  const toml::parse_result parsed = toml::parse_file(path);
  if (!parsed) {
    std::ostringstream where;
    where << parsed.error().source().begin;
    return Error{ErrorCode::malformed,
                 fmt::format("cannot read the settings file {}: {} ({})", path,
                             parsed.error().description(), where.str())};
  }
  SettingTexts texts;
  for (const auto& [key, value] : parsed.table()) {
    const std::string name(key.str());
    const bool known = std::any_of(setting_specs().begin(), setting_specs().end(),
                                   [&](const SettingSpec& spec) { return name == spec.name; });
    if (!known) {
      return invalid(
          fmt::format("unknown key '{}' in {}: its keys are the flags of 'leasehold serve --help' "
                      "without the dashes",
                      name, path));
    }
    auto text = text_of(name, value);
    if (!text) return text.error();
    texts[name] = std::move(text).value();
  }
  return texts;
}

}  // namespace leasehold::server
