// Plots as SVG for a page: its colours are classes of the page's style.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::bench {

/// For text and attributes of HTML and XML; what neither may have becomes a question mark.
std::string escaped(std::string_view text);

/// One system: its colour is by its number.
struct Bar {
  std::string name;
  std::size_t color = 0;
  double value = 0;
  double low = 0;  ///< of its interval; both 0: none is drawn
  double high = 0;
  std::string text;  ///< "85.2 us"
};
/// Horizontal bars from 0 on. `about`: what a person hears who cannot see it.
std::string bar_plot(const std::string& about, const std::vector<Bar>& bars);

struct Line {
  std::string name;
  std::size_t color = 0;
  std::vector<std::pair<double, double>> points;  ///< above 0
};
struct Tick {
  double at = 0;  ///< above 0
  std::string text;
};
/// Both axes are logarithmic. The ticks of y are powers of ten. Lines need two points.
std::string line_plot(const std::string& about, const std::string& x_name,
                      const std::string& y_name, const std::vector<Tick>& x_ticks,
                      const std::vector<Line>& lines);

}  // namespace leasehold::bench
