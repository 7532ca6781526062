// The signs in the picture of a timeline, and their words.
#pragma once

#include <leasehold/story/record.h>
#include <leasehold/story/svg.h>

#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::story {

/// The words next to a sign.
struct SignWords {
  std::string style;
  std::string label;
  std::string title;
};

SignWords words_of(const Record& r);

struct ReadSign {
  const char* style;
  const char* letter;
  const char* words;
};

ReadSign read_sign(const Record& r);
bool is_read(const Record& r);

std::string cross(Tenths x, Tenths y);
std::string diamond(Tenths x, Tenths y);

/// Explains what the picture uses, between `left` and `right` from `y` on. Returns where it ends.
Tenths draw_legend(Svg& svg, Tenths left, Tenths right, Tenths y,
                   const std::vector<ReadSign>& reads);

}  // namespace leasehold::story
