// The spans of a replica's calls: one for each call that the Tracer wants. Not an interface for
// users.
#pragma once

#include <leasehold/lease/clock.h>
#include <leasehold/node/tracer.h>
#include <leasehold/replica/calls.h>

namespace leasehold::node {

/// What a replica's calls are traced with; it and the clock outlive the calls.
struct Tracing {
  Tracer* tracer = nullptr;  ///< null: no call has a span
  const lease::Clock* clock = nullptr;

  /// The span of a proposal, which ends when `done` is called. Null: it has none.
  replica::SpanPointer proposal(const replica::TraceContext* parent,
                                replica::ProposeCompletion& done) const {
    return wants(parent) ? begin_proposal(parent, done) : nullptr;
  }
  /// The same of a read; `mode` is a literal.
  replica::SpanPointer read(const char* mode, const replica::TraceContext* parent,
                            replica::ReadCompletion& done) const {
    return wants(parent) ? begin_read(mode, parent, done) : nullptr;
  }
  bool wants(const replica::TraceContext* parent) const {
    return tracer != nullptr && tracer->wants(parent);
  }

 private:
  replica::SpanPointer begin_proposal(const replica::TraceContext* parent,
                                      replica::ProposeCompletion& done) const;
  replica::SpanPointer begin_read(const char* mode, const replica::TraceContext* parent,
                                  replica::ReadCompletion& done) const;
};

const char* mode_text(raft::ReadMode mode);
const char* basis_text(raft::ReadBasis basis);
/// Notes in the span how the read was justified, or that it was not, and ends it.
void end_read(replica::Span& span, lease::HolderInstant at, const replica::ReadResult& result,
              const char* basis);

}  // namespace leasehold::node
