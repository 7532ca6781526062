// TraceContext: which trace a call is part of, in the form of W3C's header `traceparent`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::replica {

/// A span, as the spans below it name it. Ids mean nothing by themselves: they are random.
struct TraceContext {
  /// Of the trace: 16 bytes, not all 0.
  std::uint64_t trace_high = 0;
  std::uint64_t trace_low = 0;
  std::uint64_t span = 0;  ///< not 0
  /// The caller records its part of the trace. False: then nobody below it records either.
  bool sampled = true;
  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

/// For a caller that has decided against a trace: what is called with it has no span.
inline constexpr TraceContext kUntraced{.trace_low = 1, .span = 1, .sampled = false};

/// "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01". None: it has no such form, or an id
/// of zeros. Of a version above 00 only the part that it shares with 00 is read.
std::optional<TraceContext> parse_traceparent(std::string_view text);
/// The same, as version 00.
std::string traceparent(const TraceContext& context);

/// In lower case: 32 digits and 16.
std::string trace_id_text(const TraceContext& context);
std::string span_id_text(std::uint64_t span);

}  // namespace leasehold::replica
