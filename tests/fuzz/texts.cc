// Texts that people and scripts write or keep: settings, addresses, durations, histories, traces,
// names in certificates; and replies of any server to our client. The first byte chooses.
#include <leasehold/check/history_file.h>
#include <leasehold/client/resp_client.h>
#include <leasehold/net/handshake.h>
#include <leasehold/server/front/duration.h>
#include <leasehold/server/settings.h>
#include <leasehold/story/cluster_view.h>
#include <leasehold/story/trace_file.h>
#include <leasehold/tests/fuzz/fuzz.h>
#include <leasehold/tests/fuzz/input.h>
#include <leasehold/tests/fuzz/memory_file.h>
#include <leasehold/tls/name.h>

#include <string>

namespace leasehold::fuzz {
namespace {

void take_settings(std::string_view bytes) {
  static MemoryFile file;
  const auto texts = server::read_settings_file(file.path_of(bytes));
  if (accepted(texts)) static_cast<void>(accepted(server::make_settings(texts.value())));
}

void take_history(std::string_view bytes) {
  check::History history;
  check::HistoryReader reader(history);
  std::size_t lines = 0;
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(bytes.size(), line.size() + 1));
    if (!accepted(reader.take(line))) return;
    LEASEHOLD_ASSERT(reader.lines() == ++lines);
  }
}

/// What is accepted is written again, and has one story in the order of time, whatever its clocks.
void take_cluster_trace(const std::string& text) {
  const auto trace = story::decode_cluster_trace("trace", text);
  if (!accepted(trace)) return;
  const std::string written = story::encode_cluster_trace(trace.value());
  const auto again = story::decode_cluster_trace("trace", written);
  LEASEHOLD_ASSERT(again.ok() && story::encode_cluster_trace(again.value()) == written);
  const story::ClockAlignment alignment = story::align_clocks(trace.value());
  for (const std::string& line : story::summary_of(trace.value(), alignment)) {
    LEASEHOLD_ASSERT(!story::printable(line).empty());
  }
  story::Duration last(0);
  for (const story::Record& record : story::view_of(trace.value(), alignment)) {
    LEASEHOLD_ASSERT(record.at >= last);
    LEASEHOLD_ASSERT(record.kind != story::Kind::delivered || !record.from ||
                     *record.from <= record.at);
    LEASEHOLD_ASSERT(story::decode_record(story::encode_record(record)).ok());
    last = record.at;
  }
}

void take_trace(std::string_view bytes) {
  const std::string text(bytes);
  if (story::looks_like_cluster_trace(text)) return take_cluster_trace(text);
  auto record = story::decode_record(text);
  if (accepted(record)) {
    const auto again = story::decode_record(story::encode_record(record.value()));
    // Rates in a record other than a clock's are read, but not written.
    if (record.value().kind != story::Kind::clock) {
      record.value().holder_ppm = record.value().promise_ppm = 0;
    }
    LEASEHOLD_ASSERT(again.ok() && again.value() == record.value());
    // A file is more than one record, or the one that every file begins with.
    if (record.value().kind != story::Kind::run) return;
  }
  static_cast<void>(accepted(story::decode_trace("trace", text)));
}

void take_words(std::string_view bytes) {
  const auto duration = server::parse_duration(bytes);
  if (accepted(duration)) {
    const auto again = server::parse_duration(server::format_duration(duration.value()));
    LEASEHOLD_ASSERT(again.ok() && again.value() == duration.value());
  }
  static_cast<void>(accepted(net::parse_address(bytes)));
  static_cast<void>(accepted(server::parse_peers(bytes)));
}

void take_name(std::string_view bytes) {
  const auto name = tls::parse_uri(bytes);
  if (!accepted(name)) return;
  LEASEHOLD_ASSERT(tls::validate_name(name.value()).ok());
  LEASEHOLD_ASSERT(tls::to_uri(name.value()) == bytes);
}

void take_reply(std::string_view bytes) {
  client::RespValue value;
  const auto length = client::parse_reply(bytes, value);
  if (!accepted(length)) return;
  LEASEHOLD_ASSERT(length.value() <= bytes.size());
  if (length.value() == 0) return;
  // A complete reply stays the same with any bytes after it, and no shorter part is complete.
  client::RespValue part;
  LEASEHOLD_ASSERT(client::parse_reply(bytes.substr(0, length.value()), part).value() ==
                   length.value());
  const auto early = client::parse_reply(bytes.substr(0, length.value() - 1), part);
  LEASEHOLD_ASSERT(early.ok() && early.value() == 0);
}

}  // namespace

void take(std::string_view input) {
  Input in(input);
  const unsigned chosen = in.byte();
  switch (chosen % 8) {
    case 0:
    case 1: return take_settings(in.rest());
    case 2: return take_history(in.rest());
    case 3: return take_trace(in.rest());
    case 4: return take_name(in.rest());
    case 5:
    case 6: return take_words(in.rest());
    default: return take_reply(in.rest());
  }
}

}  // namespace leasehold::fuzz
