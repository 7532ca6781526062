// The settings that say what this node writes for its operators: for the table of settings.cc.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/server/settings.h>

#include <string>

namespace leasehold::server {

Result<void> set_first_log_level(ServeSettings& settings, const std::string& text);
Result<void> set_log_format(ServeSettings& settings, const std::string& text);
Result<void> set_spans(ServeSettings& settings, const std::string& text);
Result<void> set_spans_ratio(ServeSettings& settings, const std::string& text);
Result<void> set_spans_bytes(ServeSettings& settings, const std::string& text);

}  // namespace leasehold::server
