// A sink that keeps the spans that have ended.
#pragma once

#include <leasehold/replica/span.h>

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::replica::testing {

class KeptSpans {
 public:
  void keep(SpanRecord span) {
    const std::lock_guard lock(mutex_);
    spans_.push_back(std::move(span));
  }
  std::vector<SpanRecord> all() const {
    const std::lock_guard lock(mutex_);
    return spans_;
  }
  std::vector<SpanRecord> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(spans_, {});
  }

 private:
  mutable std::mutex mutex_;
  std::vector<SpanRecord> spans_;
};

class KeepingSink final : public SpanSink, public KeptSpans {
 public:
  void ended(SpanRecord span) override { keep(std::move(span)); }
};

inline std::vector<std::string> stations(const SpanRecord& span) {
  std::vector<std::string> names;
  for (const SpanStation& one : span.stations) names.emplace_back(one.name);
  return names;
}

/// As text. Empty: it has no such attribute.
inline std::string value_of(const std::vector<SpanAttribute>& attributes, std::string_view key) {
  for (const SpanAttribute& one : attributes) {
    if (one.key != key) continue;
    const auto* number = std::get_if<std::int64_t>(&one.value);
    return number != nullptr ? std::to_string(*number) : std::get<std::string>(one.value);
  }
  return {};
}

/// No station is before the one before it, or outside of the span.
inline bool in_order(const SpanRecord& span) {
  lease::HolderInstant last = span.began;
  for (const SpanStation& one : span.stations) {
    if (one.at < last) return false;
    last = one.at;
  }
  return span.ended >= last;
}

}  // namespace leasehold::replica::testing
