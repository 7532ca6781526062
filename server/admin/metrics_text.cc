#include <leasehold/base/assert.h>
#include <leasehold/server/admin/metrics_text.h>

#include <fmt/format.h>

#include <iterator>

namespace leasehold::server {
namespace {

const char* type_name(MetricType type) {
  switch (type) {
    case MetricType::counter: return "counter";
    case MetricType::gauge: return "gauge";
    case MetricType::histogram: return "histogram";
  }
  LEASEHOLD_UNREACHABLE();
}

/// The format is UTF-8, and one wrong byte would make a monitor refuse the whole page: what is not
/// ASCII is replaced.
void append_escaped(std::string& out, std::string_view value) {
  for (const char c : value) {
    if (c == '\\' || c == '"') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out.append("\\n");
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.push_back(byte < 0x20 || byte > 0x7e ? '?' : c);
    }
  }
}

}  // namespace

MetricsText& MetricsText::family(const MetricSpec& spec) {
  fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", spec.name, spec.help,
                 spec.name, type_name(spec.type));
  spec_ = &spec;
  return *this;
}

void MetricsText::sample(std::string_view suffix, std::string_view value, Labels labels,
                         std::string_view bound) {
  LEASEHOLD_ASSERT(spec_ != nullptr);
  text_.append(spec_->name).append(suffix);
  char before = '{';
  const auto label = [&](std::string_view name, std::string_view text) {
    text_.push_back(before);
    text_.append(name).append("=\"");
    append_escaped(text_, text);
    text_.push_back('"');
    before = ',';
  };
  for (const MetricLabel& one : labels) label(one.name, one.value);
  if (!bound.empty()) label("le", bound);
  if (before == ',') text_.push_back('}');
  text_.append(" ").append(value).append("\n");
}

MetricsText& MetricsText::add(std::uint64_t value, Labels labels) {
  sample("", std::to_string(value), labels);
  return *this;
}

MetricsText& MetricsText::add(double value, Labels labels) {
  sample("", fmt::format("{}", value), labels);
  return *this;
}

MetricsText& MetricsText::histogram(const std::vector<double>& bounds,
                                    const std::vector<std::uint64_t>& counts, double sum,
                                    Labels labels) {
  LEASEHOLD_ASSERT(counts.size() == bounds.size() + 1);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    total += counts[i];
    sample("_bucket", std::to_string(total), labels, fmt::format("{}", bounds[i]));
  }
  total += counts.back();
  sample("_bucket", std::to_string(total), labels, "+Inf");
  sample("_sum", fmt::format("{}", sum), labels);
  sample("_count", std::to_string(total), labels);
  return *this;
}

}  // namespace leasehold::server
