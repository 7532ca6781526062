#include <leasehold/bench/load/reply.h>

#include <algorithm>
#include <charconv>
#include <string>

namespace leasehold::bench {
namespace {

constexpr int kDepthMax = 8;
constexpr std::int64_t kItemsMax = 1 << 20;
constexpr std::int64_t kBytesMax = std::int64_t{512} << 20;
constexpr std::size_t kLineMax = 64U << 10U;
constexpr std::size_t kErrorWordMax = 32;

Error no_reply(const char* what) {
  return Error{ErrorCode::malformed,
               std::string("the server sent no reply of the protocol: ") + what};
}

bool is_line_mark(char mark) {
  return mark == '+' || mark == '-' || mark == ':' || mark == ',' || mark == '#' || mark == '(';
}

struct Head {
  std::size_t end = 0;  ///< of its line; 0: it is not complete
  std::int64_t number = 0;
};

Result<Head> head_of(std::string_view bytes) {
  const std::size_t end = bytes.find("\r\n");
  if (end == std::string_view::npos) {
    if (bytes.size() > kLineMax) return no_reply("a line without an end");
    return Head{};
  }
  Head head{end + 2, 0};
  if (is_line_mark(bytes[0]) || bytes[0] == '_') return head;
  const auto read = std::from_chars(bytes.data() + 1, bytes.data() + end, head.number);
  if (read.ec != std::errc() || read.ptr != bytes.data() + end || head.number < -1) {
    return no_reply("a length that is no number");
  }
  return head;
}

/// The end of `items` replies; 0: not complete.
Result<std::size_t> end_of_items(std::string_view bytes, std::size_t at, std::int64_t items,
                                 int depth);

Result<std::size_t> end_of_reply(std::string_view bytes, int depth) {
  if (bytes.empty()) return std::size_t{0};
  if (depth > kDepthMax) return no_reply("arrays within arrays without an end");
  const auto head = head_of(bytes);
  if (!head) return head.error();
  const auto [end, number] = head.value();
  if (end == 0 || is_line_mark(bytes[0]) || bytes[0] == '_') return end;
  switch (bytes[0]) {
    case '$':
    case '=':
    case '!': {
      if (number > kBytesMax) return no_reply("a string that is too long");
      if (number < 0) return end;
      const std::size_t whole = end + static_cast<std::size_t>(number) + 2;
      if (bytes.size() < whole) return std::size_t{0};
      if (bytes.substr(whole - 2, 2) != "\r\n") return no_reply("a string of another length");
      return whole;
    }
    case '*':
    case '~':
    case '>':
    case '%':
      if (number > kItemsMax) return no_reply("an array that is too long");
      return end_of_items(bytes, end, bytes[0] == '%' ? 2 * number : number, depth + 1);
    default: return no_reply("a kind that is not known");
  }
}

Result<std::size_t> end_of_items(std::string_view bytes, std::size_t at, std::int64_t items,
                                 int depth) {
  for (std::int64_t i = 0; i < items; ++i) {
    const auto end = end_of_reply(bytes.substr(at), depth);
    if (!end || end.value() == 0) return end;
    at += end.value();
  }
  return at;
}

/// What stands behind the line of its length; nothing of a null.
std::string_view string_of(std::string_view reply) {
  const std::size_t begin = reply.find("\r\n") + 2;
  return begin == reply.size() ? std::string_view() : reply.substr(begin, reply.size() - begin - 2);
}

}  // namespace

Result<ReplyView> first_reply(std::string_view bytes) {
  const auto end = end_of_reply(bytes, 0);
  if (!end) return end.error();
  ReplyView reply;
  if (end.value() == 0) return reply;
  reply.length = end.value();
  reply.kind = ReplyView::Kind::value;
  if (is_line_mark(bytes[0])) reply.text = bytes.substr(1, reply.length - 3);
  if (bytes[0] == '$') reply.text = string_of(bytes.substr(0, reply.length));
  if (bytes[0] == '-') reply.kind = ReplyView::Kind::error;
  const bool none = bytes[0] == '_' || bytes.substr(0, 3) == "$-1" || bytes.substr(0, 3) == "*-1";
  if (none) reply.kind = ReplyView::Kind::null;
  return reply;
}

std::string_view error_word(std::string_view text) {
  const std::string_view word = text.substr(0, text.find(' ')).substr(0, kErrorWordMax);
  const bool plain =
      std::all_of(word.begin(), word.end(), [](char c) { return c > ' ' && c < 127; });
  return plain && !word.empty() ? word : std::string_view("unreadable");
}

}  // namespace leasehold::bench
