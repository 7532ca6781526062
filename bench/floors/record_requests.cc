#include <leasehold/bench/floors/record_requests.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace leasehold::bench {
namespace {

constexpr std::size_t kWordsMax = 1024;
constexpr std::size_t kWordBytesMax = std::size_t{512} << 20U;
constexpr std::size_t kLineBytesMax = 64U << 10U;

RecordRequest malformed_request() {
  return {RecordRequest::Kind::malformed, 0, ""};
}

bool same_word(std::string_view word, std::string_view upper) {
  return std::equal(word.begin(), word.end(), upper.begin(), upper.end(), [](char given, char up) {
    return given == up || (given >= 'a' && given <= 'z' && given - 'a' + 'A' == up);
  });
}

RecordRequest request_of_words(const std::vector<std::string_view>& words, std::size_t length) {
  if (same_word(words[0], "SET")) return {RecordRequest::Kind::record, length, ""};
  std::string reply = "-ERR the floor knows SET, PING and CONFIG GET\r\n";
  if (same_word(words[0], "PING")) reply = "+PONG\r\n";
  if (words.size() == 3 && same_word(words[0], "CONFIG") && same_word(words[1], "GET")) {
    // redis-benchmark asks for `save` and `appendonly`, to print them: it wants a name and a value.
    reply = "*2\r\n$" + std::to_string(words[2].size()) + "\r\n" + std::string(words[2]) +
            "\r\n$0\r\n\r\n";
  }
  return {RecordRequest::Kind::other, length, std::move(reply)};
}

/// "$12\r\n" and "*3\r\n". None: no such line. A position of npos: it is not complete yet.
struct NumberLine {
  std::size_t number = 0;
  std::size_t end = std::string_view::npos;
};

std::optional<NumberLine> number_line(std::string_view bytes, std::size_t begin, char mark,
                                      std::size_t number_max) {
  if (begin == bytes.size()) return NumberLine{};
  if (bytes[begin] != mark) return std::nullopt;
  // No number is longer.
  const std::size_t end = bytes.substr(0, begin + 24).find("\r\n", begin);
  if (end == std::string_view::npos) {
    return bytes.size() >= begin + 24 ? std::nullopt : std::optional(NumberLine{});
  }
  NumberLine line;
  const auto read = std::from_chars(bytes.data() + begin + 1, bytes.data() + end, line.number);
  if (read.ec != std::errc() || read.ptr != bytes.data() + end || line.number > number_max) {
    return std::nullopt;
  }
  line.end = end + 2;
  return line;
}

}  // namespace

RecordRequest first_request(std::string_view bytes) {
  if (bytes.empty()) return {};
  if (bytes[0] != '*') {  // a line, as redis-benchmark's PING_INLINE
    const std::size_t end = bytes.find("\r\n");
    if (end == std::string_view::npos) {
      return bytes.size() > kLineBytesMax ? malformed_request() : RecordRequest{};
    }
    return request_of_words({bytes.substr(0, std::min(end, bytes.find(' ')))}, end + 2);
  }
  const auto count = number_line(bytes, 0, '*', kWordsMax);
  if (!count || (count->end != std::string_view::npos && count->number == 0)) {
    return malformed_request();
  }
  if (count->end == std::string_view::npos) return {};
  std::size_t at = count->end;
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < count->number; ++i) {
    const auto line = number_line(bytes, at, '$', kWordBytesMax);
    if (!line) return malformed_request();
    if (line->end == std::string_view::npos) return {};
    if (bytes.size() < line->end + line->number + 2) return {};
    words.push_back(bytes.substr(line->end, line->number));
    at = line->end + line->number + 2;
    if (bytes.substr(at - 2, 2) != "\r\n") return malformed_request();
  }
  return request_of_words(words, at);
}

}  // namespace leasehold::bench
