#include <leasehold/server/terminal.h>

#include <fmt/format.h>

#include <cstdlib>

#include <unistd.h>

namespace leasehold::server {

bool use_color(Color wish, int output) {
  if (wish != Color::automatic) return wish == Color::always;
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* terminal = std::getenv("TERM");
  if (terminal == nullptr || std::string_view(terminal) == "dumb") return false;
  return isatty(output) == 1;
}

std::string painted(std::string_view text, Paint paint, bool color) {
  if (!color || paint == Paint::plain) return std::string(text);
  const char* code = "0";
  switch (paint) {
    case Paint::plain: break;
    case Paint::bold: code = "1"; break;
    case Paint::green: code = "32"; break;
    case Paint::yellow: code = "33"; break;
    case Paint::red: code = "31"; break;
    case Paint::dim: code = "2"; break;
  }
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

}  // namespace leasehold::server
