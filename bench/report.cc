#include <leasehold/bench/report.h>

#include <array>
#include <cstdio>

namespace leasehold::bench {

std::string table_of(const NamedHistograms& rows, double per_unit, std::string_view unit) {
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(), "%-28s %10s %10s %10s %10s %10s %10s  %.*s\n", "",
                "count", "p50", "p90", "p99", "p99.9", "max", static_cast<int>(unit.size()),
                unit.data());
  std::string table = line.data();
  for (const auto& [name, histogram] : rows) {
    const auto shown = [&h = histogram, per_unit](double q) {
      return static_cast<double>(h.quantile(q)) / per_unit;
    };
    std::snprintf(line.data(), line.size(), "%-28s %10llu %10.2f %10.2f %10.2f %10.2f %10.2f\n",
                  name.c_str(), static_cast<unsigned long long>(histogram.count()), shown(0.5),
                  shown(0.9), shown(0.99), shown(0.999), shown(1.0));
    table += line.data();
  }
  return table;
}

std::string json_of(const NamedHistograms& rows, std::string_view unit) {
  std::string text = "{";
  for (const auto& [name, histogram] : rows) {
    if (text.size() > 1) text += ", ";
    text += "\"" + name + "\": " + histogram.to_json(unit);
  }
  return text + "}";
}

}  // namespace leasehold::bench
