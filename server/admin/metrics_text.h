// The text format of Prometheus, written line by line.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server {

enum class MetricType : std::uint8_t { counter, gauge, histogram };

/// Each name once, with its type and its meaning: docs/metrics.md repeats them.
struct MetricSpec {
  const char* name;
  MetricType type;
  const char* help;
};

struct MetricLabel {
  const char* name;
  std::string_view value;  ///< any bytes: they are escaped
};

/// A page of metrics that is being written. It takes values as they are: what is counted is counted
/// elsewhere, in relaxed atomics, and no registry with a lock stands between. First family(), then
/// its samples. One without samples is on the page, too, so that a monitor sees that it exists.
class MetricsText {
 public:
  using Labels = std::initializer_list<MetricLabel>;

  MetricsText& family(const MetricSpec& spec);
  MetricsText& add(std::uint64_t value, Labels labels = {});
  MetricsText& add(double value, Labels labels = {});
  /// `counts` has one more element than `bounds`: of what is above all of them. `sum` of all
  /// values.
  MetricsText& histogram(const std::vector<double>& bounds,
                         const std::vector<std::uint64_t>& counts, double sum, Labels labels = {});
  /// family() and one value without labels.
  void one(const MetricSpec& spec, std::uint64_t value) { family(spec).add(value); }
  void one(const MetricSpec& spec, double value) { family(spec).add(value); }

  std::string take() { return std::move(text_); }

 private:
  void sample(std::string_view suffix, std::string_view value, Labels labels,
              std::string_view bound = {});

  std::string text_;
  const MetricSpec* spec_ = nullptr;
};

}  // namespace leasehold::server
