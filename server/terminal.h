// Colours, where a person looks and wants them.
#pragma once

#include <string>
#include <string_view>

namespace leasehold::server {

/// `automatic`: when the output is a terminal, NO_COLOR is not set to anything and TERM is not
/// "dumb".
enum class Color { automatic, always, never };

/// Whether to colour the text that goes to the descriptor `output`.
bool use_color(Color wish, int output);

enum class Paint { plain, bold, green, yellow, red, dim };

/// `text` between the escape sequences of `paint`; `text` alone when `color` is false.
std::string painted(std::string_view text, Paint paint, bool color);

}  // namespace leasehold::server
