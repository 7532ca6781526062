#include <leasehold/replica/trace_context.h>

#include <cstddef>

namespace leasehold::replica {
namespace {

// Where the parts of a traceparent of version 00 begin, and its length.
constexpr std::size_t kTraceAt = 3;
constexpr std::size_t kSpanAt = 36;
constexpr std::size_t kFlagsAt = 53;
constexpr std::size_t kLength = 55;
constexpr std::uint64_t kSampledFlag = 1;

/// Lower case only, as the standard has it.
std::optional<std::uint64_t> parse_hex(std::string_view digits) {
  std::uint64_t value = 0;
  for (const char digit : digits) {
    value <<= 4U;
    if (digit >= '0' && digit <= '9') {
      value |= static_cast<std::uint64_t>(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      value |= static_cast<std::uint64_t>(digit - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

void append_hex(std::string& out, std::uint64_t value) {
  for (int shift = 60; shift >= 0; shift -= 4) {
    out += "0123456789abcdef"[value >> static_cast<unsigned>(shift) & 0xfU];
  }
}

}  // namespace

std::optional<TraceContext> parse_traceparent(std::string_view text) {
  if (text.size() < kLength) return std::nullopt;
  const auto version = parse_hex(text.substr(0, 2));
  if (!version || *version == 0xff) return std::nullopt;
  // A later version may have more behind another dash.
  const bool whole = text.size() == kLength || (*version > 0 && text[kLength] == '-');
  if (!whole || text[kTraceAt - 1] != '-' || text[kSpanAt - 1] != '-' ||
      text[kFlagsAt - 1] != '-') {
    return std::nullopt;
  }
  const auto high = parse_hex(text.substr(kTraceAt, 16));
  const auto low = parse_hex(text.substr(kTraceAt + 16, 16));
  const auto span = parse_hex(text.substr(kSpanAt, 16));
  const auto flags = parse_hex(text.substr(kFlagsAt, 2));
  if (!high || !low || !span || !flags) return std::nullopt;
  if ((*high | *low) == 0 || *span == 0) return std::nullopt;
  return TraceContext{*high, *low, *span, (*flags & kSampledFlag) != 0};
}

std::string traceparent(const TraceContext& context) {
  return "00-" + trace_id_text(context) + "-" + span_id_text(context.span) +
         (context.sampled ? "-01" : "-00");
}

std::string trace_id_text(const TraceContext& context) {
  std::string text;
  append_hex(text, context.trace_high);
  append_hex(text, context.trace_low);
  return text;
}

std::string span_id_text(std::uint64_t span) {
  std::string text;
  append_hex(text, span);
  return text;
}

}  // namespace leasehold::replica
