#include <leasehold/server/front/log_level.h>
#include <leasehold/server/front/words.h>
#include <leasehold/server/report_settings.h>
#include <leasehold/server/setting_words.h>

#include <cstdint>

namespace leasehold::server {
namespace {

constexpr std::uint64_t kSpansBytesMin = 1U << 20U;

}  // namespace

Result<void> set_first_log_level(ServeSettings& settings, const std::string& text) {
  if (redis_log_level(text).empty()) {
    return invalid(quoted(text) + " is none of trace, debug, info, warn, error, off");
  }
  settings.log_level = text;
  return {};
}

Result<void> set_log_format(ServeSettings& settings, const std::string& text) {
  if (text != "text" && text != "json") return invalid(quoted(text) + " is neither text nor json");
  settings.log_format = text;
  return {};
}

Result<void> set_spans(ServeSettings& settings, const std::string& text) {
  settings.spans = text;
  return {};
}

Result<void> set_spans_ratio(ServeSettings& settings, const std::string& text) {
  const auto millionths = parse_scaled(text, 1'000'000);
  if (!millionths || *millionths > 1'000'000) {
    return invalid(quoted(text) + " is not a fraction from 0 to 1, as in 0.01 for 1 %");
  }
  settings.spans_ratio = static_cast<double>(*millionths) / 1e6;
  return {};
}

Result<void> set_spans_bytes(ServeSettings& settings, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes) return bytes.error();
  if (bytes.value() < kSpansBytesMin) return invalid("a file of spans needs 1M or more");
  settings.spans_bytes = bytes.value();
  return {};
}

}  // namespace leasehold::server
