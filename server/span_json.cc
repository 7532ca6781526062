#include <leasehold/server/span_json.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>

namespace leasehold::server {
namespace {

// Of opentelemetry/proto/trace/v1/trace.proto.
constexpr int kKindInternal = 1;
constexpr int kKindServer = 2;
constexpr int kStatusError = 2;

/// With its quotes. What is no UTF-8 becomes U+FFFD.
void append_text(std::string& out, std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
  });
  if (plain) {
    out.append(1, '"').append(text).append(1, '"');
    return;
  }
  out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void append_attribute(std::string& out, std::string_view key, std::string_view value) {
  out += R"({"key":)";
  append_text(out, key);
  out += R"(,"value":{"stringValue":)";
  append_text(out, value);
  out += "}}";
}

/// An integer of 64 bits is a string in the JSON of protocol buffers.
void append_attribute(std::string& out, std::string_view key, std::int64_t value) {
  out += R"({"key":)";
  append_text(out, key);
  fmt::format_to(std::back_inserter(out), R"(,"value":{{"intValue":"{}"}}}})", value);
}

void append_attributes(std::string& out, const std::vector<replica::SpanAttribute>& attributes) {
  bool first = true;
  for (const replica::SpanAttribute& one : attributes) {
    if (!std::exchange(first, false)) out += ',';
    std::visit([&](const auto& value) { append_attribute(out, one.key, value); }, one.value);
  }
}

void append_time(std::string& out, std::string_view key, lease::HolderInstant at,
                 std::int64_t unix_ns) {
  fmt::format_to(std::back_inserter(out), R"("{}":"{}")", key, unix_ns + at.since_origin().count());
}

/// What a client reaches. The rest of the span says what it did.
void append_server(std::string& out, const SpanResource& resource) {
  append_attribute(out, "db.system.name", "leasehold");
  const std::size_t colon = resource.address.rfind(':');
  out += ',';
  append_attribute(out, "server.address", std::string_view(resource.address).substr(0, colon));
  std::int64_t port = 0;
  if (colon != std::string::npos) port = std::atoll(resource.address.c_str() + colon + 1);
  if (port <= 0) return;
  out += ',';
  append_attribute(out, "server.port", port);
}

}  // namespace

std::string span_line_begin(const SpanResource& resource) {
  std::string out = R"({"resourceSpans":[{"resource":{"attributes":[)";
  append_attribute(out, "service.name", "leasehold");
  out += ',';
  append_attribute(out, "service.namespace", resource.cluster);
  out += ',';
  append_attribute(out, "service.instance.id", resource.node);
  out += ',';
  append_attribute(out, "service.version", resource.version);
  out += R"(]},"scopeSpans":[{"scope":{"name":"leasehold"},"spans":[)";
  return out;
}

std::string_view span_line_end() {
  return "]}]}]}\n";
}

void append_span(std::string& out, const replica::SpanRecord& span, std::int64_t unix_ns,
                 const SpanResource& resource) {
  fmt::format_to(std::back_inserter(out), R"({{"traceId":"{}","spanId":"{}",)",
                 replica::trace_id_text(span.self), replica::span_id_text(span.self.span));
  if (span.parent != 0) {
    fmt::format_to(std::back_inserter(out), R"("parentSpanId":"{}",)",
                   replica::span_id_text(span.parent));
  }
  out += R"("name":)";
  append_text(out, span.name);
  fmt::format_to(std::back_inserter(out), R"(,"kind":{},)",
                 span.serves ? kKindServer : kKindInternal);
  append_time(out, "startTimeUnixNano", span.began, unix_ns);
  out += ',';
  append_time(out, "endTimeUnixNano", span.ended, unix_ns);
  out += R"(,"attributes":[)";
  if (span.serves) {
    append_server(out, resource);
    if (!span.attributes.empty()) out += ',';
  }
  append_attributes(out, span.attributes);
  out += R"(],"events":[)";
  bool first = true;
  for (const replica::SpanStation& station : span.stations) {
    out += std::exchange(first, false) ? "{" : ",{";
    append_time(out, "timeUnixNano", station.at, unix_ns);
    out += R"(,"name":)";
    append_text(out, station.name);
    out += R"(,"attributes":[)";
    append_attributes(out, station.attributes);
    out += "]}";
  }
  out += ']';
  if (span.stations_dropped > 0) {
    fmt::format_to(std::back_inserter(out), R"(,"droppedEventsCount":{})", span.stations_dropped);
  }
  out += R"(,"status":{)";
  if (!span.problem.empty()) {
    fmt::format_to(std::back_inserter(out), R"("code":{},"message":)", kStatusError);
    append_text(out, span.problem);
  }
  out += "}}";
}

}  // namespace leasehold::server
