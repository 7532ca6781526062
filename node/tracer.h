// Tracer: decides which calls have a span, and takes the spans that have ended.
#pragma once

#include <leasehold/lease/instant.h>
#include <leasehold/replica/span.h>

#include <atomic>
#include <string_view>

namespace leasehold::node {

/// Put into NodeOptions::tracer; a program derives from it and passes the spans on (ended()). A
/// node without one pays a branch for each call. Any thread.
///
/// A call that names its trace (CallOptions::trace) follows the decision of its caller; of the
/// others a part is drawn.
class Tracer : public replica::SpanSink {
 public:
  /// See set_ratio().
  explicit Tracer(double ratio) { set_ratio(ratio); }

  /// The part of the calls that have a span, from 0 (none) to 1 (all); what lies outside is cut.
  void set_ratio(double ratio);
  double ratio() const { return ratio_.load(std::memory_order_relaxed); }

  /// Whether a call has a span. `parent`: the trace that it names; null: none.
  bool wants(const replica::TraceContext* parent) const {
    if (parent != nullptr) return parent->sampled;
    const double part = ratio();
    return part > 0 && draw(part);
  }
  /// For a call that wants() said yes to. `name` is a literal. `began` is on the node's clock, and
  /// not after now. `serves`: see SpanRecord.
  replica::SpanPointer make(std::string_view name, const replica::TraceContext* parent,
                            lease::HolderInstant began, bool serves = false);

 private:
  static bool draw(double ratio);

  std::atomic<double> ratio_{0};
};

}  // namespace leasehold::node
