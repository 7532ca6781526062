// Span: the record of one call, with the stations that it passed and when.
#pragma once

#include <leasehold/lease/instant.h>
#include <leasehold/replica/trace_context.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::replica {

/// Names and keys are literals: they live as long as the program.
struct SpanAttribute {
  std::string_view key;
  std::variant<std::int64_t, std::string> value;
  friend bool operator==(const SpanAttribute&, const SpanAttribute&) = default;
};
inline SpanAttribute attribute(std::string_view key, std::uint64_t value) {
  return {key, static_cast<std::int64_t>(value)};
}
inline SpanAttribute attribute(std::string_view key, std::string value) {
  return {key, std::move(value)};
}

/// Something that happened to the call; an event of OpenTelemetry.
struct SpanStation {
  std::string_view name;
  lease::HolderInstant at;
  std::vector<SpanAttribute> attributes;
};

/// Stations of a span; what comes behind these is counted only.
inline constexpr std::size_t kSpanStationsMax = 64;

struct SpanRecord {
  std::string_view name;
  TraceContext self;
  std::uint64_t parent = 0;  ///< a span of the same trace; 0: none
  bool serves = false;       ///< a request from outside of the process; else a part of its work
  lease::HolderInstant began;
  lease::HolderInstant ended;
  std::vector<SpanAttribute> attributes;
  /// In the order of time: none is before `began` or behind `ended`.
  std::vector<SpanStation> stations;
  std::size_t stations_dropped = 0;
  std::string problem;  ///< why it failed; empty: it did not
};

/// Takes what has ended. Any thread, several at a time; must be quick and must not block.
class SpanSink {
 public:
  virtual ~SpanSink() = default;
  virtual void ended(SpanRecord span) = 0;
};

/// A call that is being recorded. Any thread: a command is noted by the node's thread while the one
/// that applies ends it. A call without a record has no Span: a null pointer, and one branch.
///
/// The instants come from the callers, so a Driver notes with the time of its turn. A span that is
/// never ended is lost.
class Span {
 public:
  /// `begun`: with its name, ids, parent and beginning. `sink` outlives this.
  Span(SpanRecord begun, SpanSink& sink)
      : context_(begun.self), sink_(sink), record_(std::move(begun)) {}
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  /// For calls that are a part of this one.
  const TraceContext& context() const { return context_; }
  /// Two threads may come in another order than their instants: the later one to come is taken to
  /// be no earlier than the one before.
  void station(std::string_view name, lease::HolderInstant at,
               std::vector<SpanAttribute> attributes = {});
  void add(SpanAttribute attribute);
  /// Gives it to the sink. Only the first call counts, and no station behind it. `problem`: see
  /// SpanRecord.
  void end(lease::HolderInstant at, std::string problem = {});

 private:
  const TraceContext context_;
  SpanSink& sink_;
  std::mutex mutex_;
  SpanRecord record_;
  bool ended_ = false;
};

/// What a call carries; null as a rule.
using SpanPointer = std::shared_ptr<Span>;

}  // namespace leasehold::replica
