// Writes SVG: tenths of pixels, escaped texts, a style that follows light and dark.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace leasehold::story {

/// Tenths of a pixel: integers, so that the bytes of a picture are the same everywhere.
using Tenths = std::int64_t;

/// Collects elements. `title`s are shown when the pointer rests on them.
class Svg {
 public:
  void rect(const std::string& style, Tenths x, Tenths y, Tenths width, Tenths height,
            Tenths radius = 0, const std::string& title = "");
  void line(const std::string& style, Tenths x1, Tenths y1, Tenths x2, Tenths y2,
            const std::string& title = "");
  void circle(const std::string& style, Tenths x, Tenths y, Tenths radius,
              const std::string& title = "");
  /// `data` is that of an SVG path, with coordinates from at().
  void path(const std::string& style, const std::string& data, const std::string& title = "");
  void text(const std::string& style, Tenths x, Tenths y, const std::string& words);
  /// "12.3 45".
  static std::string at(Tenths x, Tenths y);
  /// A guess that is rather too large: the viewer's own font draws the text.
  static Tenths text_width(const std::string& words);

  /// Whether anything was drawn in this style, so that the legend has to explain it.
  bool uses(const std::string& style) const { return styles_.count(style) != 0; }

  /// The whole file.
  std::string finish(Tenths width, Tenths height, const std::string& title) const;

 private:
  void close(const std::string& element, const std::string& title);
  std::string body_;
  std::set<std::string> styles_;
};

}  // namespace leasehold::story
