#include <leasehold/bench/compare/plots.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace leasehold::bench {
namespace {

// In units of the picture, which a page scales: a phone shows about as many pixels.
constexpr double kWidth = 420;
constexpr double kBarTop = 4;
constexpr double kBarRow = 40;
constexpr double kBarHeight = 14;
constexpr double kBarRoom = 330;  ///< the rest is for the figure behind it
constexpr double kPlotHeight = 250;
constexpr double kPlotLeft = 56;
constexpr double kPlotRight = 12;
constexpr double kPlotTop = 10;
constexpr double kPlotBottom = 42;
constexpr double kLegendRow = 18;

std::string svg_begin(double height, const std::string& about) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
      "aria-label=\"{}\">\n",
      kWidth, height, escaped(about));
}

/// From the values of one axis to places on it.
class LogScale {
 public:
  LogScale(double low, double high, double from, double to)
      : low_(std::log10(low)),
        span_(std::max(std::log10(high) - low_, 1e-9)),
        from_(from),
        to_(to) {}
  double operator()(double value) const {
    return from_ + (std::log10(value) - low_) / span_ * (to_ - from_);
  }

 private:
  double low_, span_, from_, to_;
};

std::string power_text(double value) {
  if (value >= 1e6) return fmt::format("{:.0f}M", value / 1e6);
  if (value >= 1000) return fmt::format("{:.0f}k", value / 1000);
  return fmt::format("{:.4g}", value);
}

struct Box {
  double x_low = 0, x_high = 0, y_low = 0, y_high = 0;
};

/// Of all points, and whole decades of y.
Box box_of(const std::vector<Line>& lines, const std::vector<Tick>& x_ticks) {
  Box box{1e300, 0, 1e300, 0};
  for (const Line& line : lines) {
    for (const auto& [x, y] : line.points) {
      box = {std::min(box.x_low, x), std::max(box.x_high, x), std::min(box.y_low, y),
             std::max(box.y_high, y)};
    }
  }
  for (const Tick& tick : x_ticks) {
    box.x_low = std::min(box.x_low, tick.at);
    box.x_high = std::max(box.x_high, tick.at);
  }
  if (box.y_high <= 0) return {1, 10, 1, 10};
  box.y_low = std::pow(10, std::floor(std::log10(box.y_low)));
  box.y_high = std::pow(10, std::ceil(std::log10(box.y_high)));
  if (box.y_high <= box.y_low) box.y_high = 10 * box.y_low;
  return box;
}

std::string axes(const Box& box, const LogScale& x, const LogScale& y, const std::string& x_name,
                 const std::string& y_name, const std::vector<Tick>& x_ticks) {
  std::string svg;
  const double right = kWidth - kPlotRight;
  const double bottom = kPlotHeight - kPlotBottom;
  for (double value = box.y_low; value <= box.y_high * 1.001; value *= 10) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        kPlotLeft, y(value), right, y(value), kPlotLeft - 6, y(value) + 4, power_text(value));
  }
  for (const Tick& tick : x_ticks) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
        x(tick.at), kPlotTop, x(tick.at), bottom, x(tick.at), bottom + 16, escaped(tick.text));
  }
  svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                     (kPlotLeft + right) / 2, kPlotHeight - 8, escaped(x_name));
  svg += fmt::format(
      "<text transform=\"translate(12 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      (kPlotTop + bottom) / 2, escaped(y_name));
  return svg;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    switch (letter) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      // XML has no other control characters, and bytes that are no ASCII might be no UTF-8.
      default: out += (letter >= ' ' && letter < 127) || letter == '\n' ? letter : '?';
    }
  }
  return out;
}

std::string bar_plot(const std::string& about, const std::vector<Bar>& bars) {
  double most = 0;
  for (const Bar& bar : bars) most = std::max({most, bar.value, bar.high});
  const double scale = most > 0 ? kBarRoom / most : 0;
  const double height =
      kBarTop + kBarRow * static_cast<double>(std::max<std::size_t>(bars.size(), 1));
  std::string svg = svg_begin(height, about);
  double top = kBarTop;
  for (const Bar& bar : bars) {
    const double middle = top + 18 + kBarHeight / 2;
    svg += fmt::format("<text x=\"0\" y=\"{:.1f}\">{}</text>\n", top + 12, escaped(bar.name));
    svg += fmt::format(
        "<rect class=\"c{}\" x=\"0\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "rx=\"2\"/>\n",
        bar.color, top + 18, std::max(bar.value * scale, 1.0), kBarHeight);
    if (bar.high > 0) {
      svg += fmt::format(
          "<path class=\"whisker\" d=\"M{0:.1f} {2:.1f}H{1:.1f}M{0:.1f} "
          "{3:.1f}V{4:.1f}M{1:.1f} {3:.1f}V{4:.1f}\"/>\n",
          bar.low * scale, bar.high * scale, middle, middle - 4, middle + 4);
    }
    svg += fmt::format("<text class=\"figure\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                       std::max(bar.value, bar.high) * scale + 6, middle + 4.5, escaped(bar.text));
    top += kBarRow;
  }
  return svg + "</svg>\n";
}

std::string line_plot(const std::string& about, const std::string& x_name,
                      const std::string& y_name, const std::vector<Tick>& x_ticks,
                      const std::vector<Line>& lines) {
  const Box box = box_of(lines, x_ticks);
  const LogScale x(box.x_low, box.x_high, kPlotLeft, kWidth - kPlotRight);
  const LogScale y(box.y_low, box.y_high, kPlotHeight - kPlotBottom, kPlotTop);
  std::string svg = svg_begin(kPlotHeight + kLegendRow * static_cast<double>(lines.size()), about);
  svg += axes(box, x, y, x_name, y_name, x_ticks);
  double legend = kPlotHeight + 10;
  for (const Line& line : lines) {
    std::string points;
    for (const auto& [at, value] : line.points) {
      points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x(at), y(value));
    }
    if (line.points.size() > 1) {
      svg += fmt::format("<polyline class=\"l{}\" points=\"{}\"/>\n", line.color, points);
    }
    svg += fmt::format(
        "<rect class=\"c{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"6\"/><text "
        "x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        line.color, kPlotLeft, legend - 8, kPlotLeft + 20, legend, escaped(line.name));
    legend += kLegendRow;
  }
  return svg + "</svg>\n";
}

}  // namespace leasehold::bench
