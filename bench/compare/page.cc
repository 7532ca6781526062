#include <leasehold/bench/compare/page.h>
#include <leasehold/bench/compare/plots.h>
#include <leasehold/bench/compare/run_compare.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace leasehold::bench {
namespace {

/// Colours that people with any kind of sight tell apart, for light and for dark.
constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --text: #1b1b1b; --soft: #5a5a5a; --back: #ffffff;
  --line: #d9d9d9; --k0: #0072b2; --k1: #d55e00; --k2: #009e73; --k3: #b5578c; }
@media (prefers-color-scheme: dark) {
  :root { --text: #ececec; --soft: #a8a8a8; --back: #16181b;
    --line: #3a3d42; --k0: #56b4e9; --k1: #f0883e; --k2: #2fc79a; --k3: #e08abb; }
}
body { margin: 0 auto; max-width: 56rem; padding: 1rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.2; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.soft { color: var(--soft); } .warn { border-left: 4px solid var(--k1); padding-left: .8rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size:
  .92rem; }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)); gap: 1rem
  2rem; }
figure { margin: 0; } figcaption { font-weight: 600; margin-bottom: .3rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--text); font: 13px system-ui, sans-serif; }
svg .figure { font-weight: 600; } svg .grid { stroke: var(--line); } svg .whisker { stroke:
  var(--text); fill: none; }
svg polyline { fill: none; stroke-width: 2.5; }
)";
/// Quantiles of a plot of percentiles: 1 / (1 - q) is its place.
constexpr std::array<double, 9> kQuantiles = {0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999};

std::string style() {
  std::string text = kStyle;
  for (std::size_t i = 0; i < kColors; ++i) {
    text += fmt::format(
        "svg .c{0} {{ fill: var(--k{0}); }} svg .l{0} {{ stroke: var(--k{0}); "
        "}}\n",
        i);
  }
  return text;
}

double microseconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1000;
}

class Page {
 public:
  Page(const CompareOptions& options, const Circumstances& circumstances, const Plan& plan,
       const Findings& findings)
      : options_(options), circumstances_(circumstances), plan_(plan), findings_(findings) {}

  std::string text() {
    html_ =
        "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" "
        "lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
        "<title>Leasehold beside etcd and Redis</title>\n<style>" +
        style() + "</style>\n</head>\n<body>\n";
    head();
    table();
    for (std::size_t i = 0; i < plan_.cases.size(); ++i) {
      if (plan_.cases[i].growth.empty()) plots_of(i);
    }
    curves();
    thrown_away();
    list("How it was measured", method_of(options_, circumstances_, plan_));
    html_ += "</body>\n</html>\n";
    return std::move(html_);
  }

 private:
  void head() {
    html_ += "<h1>Leasehold beside etcd and Redis</h1>\n";
    if (options_.smoke) {
      html_ +=
          "<p class=\"warn\">A smoke run: it shows that everything works, and no figure means "
          "anything.</p>\n";
    }
    if (circumstances_.ended_early) {
      html_ +=
          fmt::format("<p class=\"warn\">Ended early, after {} sweeps.</p>\n", options_.sweeps);
    }
    html_ +=
        fmt::format("<p class=\"soft\">{} · {} · {} cores</p>\n", escaped(circumstances_.started),
                    escaped(circumstances_.processor), circumstances_.cores);
  }

  void table() {
    html_ +=
        "<h2>Ratios</h2>\n<p>Leasehold over the other, with the 95 % interval. For p50, p99 "
        "and CPU less than 1 is "
        "better for Leasehold, for a rate more than 1.</p>\n<div "
        "class=\"wide\">\n<table>\n<thead><tr><th>Load</th>"
        "<th>Beside</th><th>Measure</th><th class=\"n\">Leasehold</th><th class=\"n\">The "
        "other</th>"
        "<th class=\"n\">Ratio (95 %)</th><th>So</th></tr></thead>\n<tbody>\n";
    for (const Ratio& ratio : findings_.ratios) {
      const bool stands = ratio.thrown_away.empty();
      html_ += fmt::format(
          "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td><td "
          "class=\"n\">{}</td><td class=\"n\">{}</td>"
          "<td>{}</td></tr>\n",
          escaped(plan_.cases[ratio.of_case].name), escaped(plan_.targets[ratio.target].name),
          escaped(ratio.measure), stands ? amount_text(ratio, ratio.ours) : "-",
          stands ? amount_text(ratio, ratio.theirs) : "-",
          stands ? interval_text(ratio.interval) : "-", escaped(verdict_of(ratio)));
    }
    if (findings_.ratios.empty()) {
      html_ += "<tr><td colspan=\"7\">Nothing to compare with: no peer is installed.</td></tr>\n";
    }
    html_ += "</tbody>\n</table>\n</div>\n";
  }

  /// The figures of a case that stand.
  std::vector<const Figure*> figures_of(std::size_t of_case) const {
    std::vector<const Figure*> all;
    for (const std::size_t target : plan_.cases[of_case].targets) {
      const Figure* const figure = findings_.figure_of(of_case, target);
      if (figure != nullptr && figure->standing > 0) all.push_back(figure);
    }
    return all;
  }

  Bar bar_of(const Figure& figure, double value, std::string text) const {
    Bar bar;
    bar.name = plan_.targets[figure.target].name;
    bar.color = plan_.targets[figure.target].color;
    bar.value = value;
    bar.text = std::move(text);
    return bar;
  }

  void add_plot(const std::string& caption, const std::string& svg) {
    html_ +=
        fmt::format("<figure><figcaption>{}</figcaption>\n{}</figure>\n", escaped(caption), svg);
  }

  void add_bars(const std::string& caption, const std::string& name, const std::vector<Bar>& bars) {
    std::string about = fmt::format("{}, {}:", name, caption);
    for (const Bar& bar : bars) about += fmt::format(" {} {};", bar.name, bar.text);
    add_plot(caption, bar_plot(about, bars));
  }

  void plots_of(std::size_t of_case) {
    const Case& one = plan_.cases[of_case];
    const std::vector<const Figure*> figures = figures_of(of_case);
    html_ += fmt::format("<h2>{}</h2>\n", escaped(one.name));
    if (figures.empty()) {
      html_ += "<p>Every block was thrown away.</p>\n";
      return;
    }
    html_ += "<div class=\"pair\">\n";
    std::vector<Bar> bars;
    if (one.latency) {
      for (const double q : {0.5, 0.99}) {
        bars.clear();
        for (const Figure* figure : figures) {
          const double us = microseconds(figure->quantile(q));
          bars.push_back(bar_of(*figure, us, fmt::format("{:.1f} us", us)));
        }
        add_bars(q < 0.9 ? "Latency, the median (p50)" : "Latency, one in a hundred (p99)",
                 one.name, bars);
      }
      percentiles(one, figures);
    } else {
      for (const Figure* figure : figures) {
        bars.push_back(
            bar_of(*figure, figure->rate.value, fmt::format("{:.0f}/s", figure->rate.value)));
        bars.back().low = figure->rate.low;
        bars.back().high = figure->rate.high;
      }
      add_bars("Operations a second", one.name, bars);
    }
    bars.clear();
    for (const Figure* figure : figures) {
      bars.push_back(
          bar_of(*figure, figure->cpu_us.value, fmt::format("{:.1f} us", figure->cpu_us.value)));
      bars.back().low = figure->cpu_us.low;
      bars.back().high = figure->cpu_us.high;
    }
    add_bars("Processor time of the servers for one", one.name, bars);
    html_ += "</div>\n";
  }

  void percentiles(const Case& one, const std::vector<const Figure*>& figures) {
    const std::vector<Tick> ticks = {{1, "0"},    {2, "50"},      {10, "90"},
                                     {100, "99"}, {1000, "99.9"}, {10000, "99.99"}};
    std::vector<Line> lines;
    for (const Figure* figure : figures) {
      Line line{plan_.targets[figure->target].name, plan_.targets[figure->target].color, {}};
      std::uint64_t count = 0;
      for (const auto& [value, times] : figure->latency) count += times;
      for (const double q : kQuantiles) {
        // What fewer than ten values lie behind is not drawn.
        if (q > 0.5 && static_cast<double>(count) * (1 - q) < 10) continue;
        line.points.emplace_back(1 / (1 - q), std::max(microseconds(figure->quantile(q)), 0.1));
      }
      lines.push_back(std::move(line));
    }
    add_plot(
        "Latency by percentile",
        line_plot(one.name +
                      ": latency by percentile, a line for each system; the bars beside it say p50 "
                      "and p99",
                  "percentile", "us", ticks, lines));
  }

  void curves() {
    std::vector<std::string> names;
    for (const Case& one : plan_.cases) {
      const bool seen = std::find(names.begin(), names.end(), one.growth) != names.end();
      if (!one.growth.empty() && !seen) names.push_back(one.growth);
    }
    if (names.empty()) return;
    html_ += "<h2>Growth</h2>\n<div class=\"pair\">\n";
    for (const std::string& name : names) curve(name);
    html_ += "</div>\n";
  }

  void curve(const std::string& name) {
    const bool values = name.rfind("values", 0) == 0;
    std::vector<Tick> ticks;
    std::vector<Line> lines;
    for (std::size_t i = 0; i < plan_.cases.size(); ++i) {
      const Case& one = plan_.cases[i];
      if (one.growth != name) continue;
      ticks.push_back({static_cast<double>(one.x), one.x < 1024 || !values
                                                       ? std::to_string(one.x)
                                                       : fmt::format("{}k", one.x / 1024)});
      for (const Figure* figure : figures_of(i)) {
        const std::string& target = plan_.targets[figure->target].name;
        auto line = std::find_if(lines.begin(), lines.end(),
                                 [&](const Line& known) { return known.name == target; });
        if (line == lines.end()) {
          lines.push_back({target, plan_.targets[figure->target].color, {}});
          line = lines.end() - 1;
        }
        const double y = values ? microseconds(figure->quantile(0.5)) : figure->rate.value;
        line->points.emplace_back(static_cast<double>(one.x), std::max(y, 0.1));
      }
    }
    const char* const what = name == "connections" ? "Reads a second, by connections"
                             : name == "writers"   ? "Writes a second, by how many are under way"
                             : name == "values-read"
                                 ? "Median of a read, by the size of its value"
                                 : "Median of a write, by the size of its value";
    std::string about = fmt::format("{}, a line for each system:", what);
    for (const Line& line : lines) {
      about += fmt::format(" {}", line.name);
      for (const auto& [x, y] : line.points) about += fmt::format(", {:.0f} at {:.0f}", y, x);
      about += ";";
    }
    add_plot(what,
             line_plot(about, values ? "bytes" : name, values ? "us" : "a second", ticks, lines));
  }

  void thrown_away() {
    const std::vector<std::string> sentences = thrown_away_of(plan_, findings_);
    if (!sentences.empty()) list("Thrown away", sentences);
  }

  void list(const std::string& title, const std::vector<std::string>& sentences) {
    html_ += fmt::format("<h2>{}</h2>\n<ul>\n", escaped(title));
    for (const std::string& sentence : sentences) html_ += "<li>" + escaped(sentence) + "</li>\n";
    html_ += "</ul>\n";
  }

  const CompareOptions& options_;
  const Circumstances& circumstances_;
  const Plan& plan_;
  const Findings& findings_;
  std::string html_;
};

}  // namespace

std::string page_of_comparison(const CompareOptions& options, const Circumstances& circumstances,
                               const Plan& plan, const Findings& findings) {
  return Page(options, circumstances, plan, findings).text();
}

}  // namespace leasehold::bench
