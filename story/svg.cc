#include <leasehold/story/svg.h>

#include <fmt/format.h>

namespace leasehold::story {
namespace {

std::string number(Tenths tenths) {
  const Tenths size = tenths < 0 ? -tenths : tenths;
  std::string text = fmt::format("{}{}", tenths < 0 ? "-" : "", size / 10);
  if (size % 10 != 0) text += fmt::format(".{}", size % 10);
  return text;
}

std::string attribute(const char* name, Tenths tenths) {
  return fmt::format(" {}=\"{}\"", name, number(tenths));
}

std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

// No custom properties: some programs that draw SVG do not know them.
constexpr const char* kStyle = R"(
text{font-family:Inter,'Segoe UI','Helvetica Neue',Arial,'DejaVu Sans',sans-serif;
font-size:11px;fill:#1f2933}
.title{font-size:16px;font-weight:600}.name{font-size:13px;font-weight:600}.muted{fill:#66727f}
.halo{paint-order:stroke;stroke:#f5f7f9;stroke-width:3px;stroke-linejoin:round}
.mid{text-anchor:middle}.end{text-anchor:end}.bold{font-weight:600}.on{fill:#fff}
.bg{fill:#fff}.lane{fill:#f5f7f9}.grid{stroke:#dfe5ea;stroke-width:1}
.axis{stroke:#8a96a3;stroke-width:1}
.mark{stroke:#8a96a3;stroke-width:1;stroke-dasharray:3 3}
.follower{fill:#d5dde5}.pre_candidate{fill:#fbe6b0}.candidate{fill:#f3bf4a}.leader{fill:#2f6fd6}
.down{fill:none;stroke:#a4afba;stroke-width:1;stroke-dasharray:4 3}
.stop{fill:url(#hatch);stroke:#c43d3d;stroke-width:1}.hatch{stroke:#c43d3d;stroke-width:1.6}
.lease{fill:#27a06c}.promise{fill:#a98be0}.promise.again{fill:#c3aeea}
.renewal{stroke:#fff;stroke-width:1.2}.edge{stroke:#116644;stroke-width:1.4;fill:none}
.counted{stroke:#116644;stroke-width:1.2;stroke-dasharray:2 3;fill:none}.tip{fill:#116644}
.append{stroke:#9aa6b2;stroke-width:1;fill:none}
.reply{stroke:#9aa6b2;stroke-width:1;stroke-dasharray:4 2;fill:none}
.ask{stroke:#c98a12;stroke-width:1.2;fill:none}
.answer{stroke:#c98a12;stroke-width:1.2;stroke-dasharray:4 2;fill:none}
.ack{stroke:#27a06c;stroke-width:1.8;fill:none}.lost{stroke:#c43d3d;stroke-width:1.4;fill:none}
.h-grey{fill:#9aa6b2}.h-amber{fill:#c98a12}.h-green{fill:#27a06c}
.yes{fill:#c98a12}.no{stroke:#c43d3d;stroke-width:2;fill:none}.fault{fill:#c43d3d}
.calm{fill:#66727f}
.r-lease{fill:#1d8457}.r-quorum{fill:#2f6fd6}.r-leader{fill:#7a55c7}.r-log{fill:#8a6a3c}
.r-none{fill:#c43d3d}
.dark{fill:#3a2a05}.red{fill:#b03030}
@media (prefers-color-scheme:dark){
text{fill:#e3e9ef}.muted{fill:#97a4b1}.on{fill:#fff}.dark{fill:#fff4d6}.red{fill:#ff8f8f}
.halo{stroke:#171e26}.bg{fill:#10151b}.lane{fill:#171e26}.grid{stroke:#28323c}
.axis{stroke:#6f7c89}.mark{stroke:#6f7c89}
.follower{fill:#364452}.pre_candidate{fill:#5b4a1c}.candidate{fill:#96701a}.leader{fill:#2f6fd6}
.down{stroke:#66727f}.stop{stroke:#f07070}.hatch{stroke:#f07070}
.lease{fill:#21895c}.promise{fill:#7757b8}.promise.again{fill:#5d4592}.renewal{stroke:#10151b}
.edge,.counted{stroke:#63d6a5}.tip{fill:#63d6a5}
.append,.reply{stroke:#64717e}.ask,.answer{stroke:#dfa53a}.ack{stroke:#3fc48c}
.lost{stroke:#f07070}
.h-grey{fill:#64717e}.h-amber{fill:#dfa53a}.h-green{fill:#3fc48c}
.yes{fill:#dfa53a}.no{stroke:#ff7b7b}.fault{fill:#f07070}.calm{fill:#97a4b1}
})";

std::string arrow(const char* color) {
  return fmt::format(
      "<marker id=\"to-{0}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
      "markerHeight=\"7\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">"
      "<path class=\"h-{0}\" d=\"M0 0.8 8 4 0 7.2z\"/></marker>\n",
      color);
}

}  // namespace

std::string Svg::at(Tenths x, Tenths y) {
  return fmt::format("{} {}", number(x), number(y));
}

Tenths Svg::text_width(const std::string& words) {
  return static_cast<Tenths>(words.size()) * 62;
}

void Svg::close(const std::string& element, const std::string& title) {
  if (title.empty()) {
    body_ += "/>\n";
  } else {
    body_ += fmt::format("><title>{}</title></{}>\n", escape(title), element);
  }
}

void Svg::rect(const std::string& style, Tenths x, Tenths y, Tenths width, Tenths height,
               Tenths radius, const std::string& title) {
  styles_.insert(style);
  body_ += fmt::format("<rect class=\"{}\"{}{}{}{}", style, attribute("x", x), attribute("y", y),
                       attribute("width", width), attribute("height", height));
  if (radius != 0) body_ += attribute("rx", radius);
  close("rect", title);
}

void Svg::line(const std::string& style, Tenths x1, Tenths y1, Tenths x2, Tenths y2,
               const std::string& title) {
  styles_.insert(style);
  body_ += fmt::format("<line class=\"{}\"{}{}{}{}", style, attribute("x1", x1),
                       attribute("y1", y1), attribute("x2", x2), attribute("y2", y2));
  const char* color = style == "append" || style == "reply" ? "grey"
                      : style == "ask" || style == "answer" ? "amber"
                      : style == "ack"                      ? "green"
                                                            : nullptr;
  if (color != nullptr) body_ += fmt::format(" marker-end=\"url(#to-{})\"", color);
  close("line", title);
}

void Svg::circle(const std::string& style, Tenths x, Tenths y, Tenths radius,
                 const std::string& title) {
  styles_.insert(style);
  body_ += fmt::format("<circle class=\"{}\"{}{}{}", style, attribute("cx", x), attribute("cy", y),
                       attribute("r", radius));
  close("circle", title);
}

void Svg::path(const std::string& style, const std::string& data, const std::string& title) {
  styles_.insert(style);
  body_ += fmt::format("<path class=\"{}\" d=\"{}\"", style, data);
  close("path", title);
}

void Svg::text(const std::string& style, Tenths x, Tenths y, const std::string& words) {
  body_ += fmt::format("<text{}{}{}>{}</text>\n",
                       style.empty() ? "" : fmt::format(" class=\"{}\"", style), attribute("x", x),
                       attribute("y", y), escape(words));
}

std::string Svg::finish(Tenths width, Tenths height, const std::string& title) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\">\n<title>{2}</title>\n<style>{3}</style>\n"
      "<defs>\n{4}{5}{6}"
      "<pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><line class=\"hatch\" x1=\"0\" y1=\"0\" x2=\"0\" "
      "y2=\"6\"/></pattern>\n</defs>\n<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n"
      "{7}</svg>\n",
      number(width), number(height), escape(title), kStyle, arrow("grey"), arrow("amber"),
      arrow("green"), body_);
}

}  // namespace leasehold::story
