#include <leasehold/bench/report.h>

#include <fmt/format.h>

namespace leasehold::bench {

std::string table_of(const NamedHistograms& rows, double per_unit, std::string_view unit) {
  std::string table = fmt::format("{:<28} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}  {}\n", "",
                                  "count", "p50", "p90", "p99", "p99.9", "max", unit);
  for (const auto& [name, histogram] : rows) {
    const auto shown = [&h = histogram, per_unit](double q) {
      return static_cast<double>(h.quantile(q)) / per_unit;
    };
    table += fmt::format("{:<28} {:>10} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f}\n", name,
                         histogram.count(), shown(0.5), shown(0.9), shown(0.99), shown(0.999),
                         shown(1.0));
  }
  return table;
}

std::string json_of(const NamedHistograms& rows, std::string_view unit) {
  std::string text = "{";
  for (const auto& [name, histogram] : rows) {
    if (text.size() > 1) text += ", ";
    text += fmt::format("\"{}\": {}", name, histogram.to_json(unit));
  }
  return text + "}";
}

}  // namespace leasehold::bench
