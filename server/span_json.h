// Spans as OpenTelemetry writes them in JSON: what its Collector reads from a file, line by line.
#pragma once

#include <leasehold/replica/span.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server {

/// Of the process whose spans they are.
struct SpanResource {
  std::string cluster;
  std::string node;     ///< its number
  std::string version;  ///< of the program
  std::string address;  ///< host:port where clients connect
};

/// Around the spans of a line: an ExportTraceServiceRequest, from its beginning, and to its end
/// with a line feed.
std::string span_line_begin(const SpanResource& resource);
std::string_view span_line_end();
/// One span of a line; between two of them there is a comma. `unix_ns`: the time of people at zero
/// of the clock of the span's instants.
void append_span(std::string& out, const replica::SpanRecord& span, std::int64_t unix_ns,
                 const SpanResource& resource);

}  // namespace leasehold::server
