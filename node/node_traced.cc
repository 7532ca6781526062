#include <leasehold/node/node_traced.h>

#include <string>
#include <string_view>
#include <utility>

namespace leasehold::node {
namespace {

using replica::attribute;

/// What a proposal came to; empty: its command was executed.
std::string problem_of(const replica::ProposeResult& result) {
  switch (result.status) {
    case replica::ProposeStatus::committed: return "";
    case replica::ProposeStatus::unknown: return "unknown: it may still be executed";
    case replica::ProposeStatus::dropped: break;
  }
  if (result.overloaded) return "dropped: overloaded";
  if (result.disk_full_at != raft::kNobody) return "dropped: disk full";
  if (result.other_leadership) return "dropped: not the expected leadership";
  return "dropped: no leader took it in time";
}

void end_proposal(replica::Span& span, lease::HolderInstant at,
                  const replica::ProposeResult& result) {
  std::string problem = problem_of(result);
  if (problem.empty()) {
    span.station("applied", at);
    span.add(attribute("leasehold.term", result.id.term.value()));
    span.add(attribute("leasehold.index", result.id.index.value()));
  } else {
    if (result.leader != raft::kNobody) {
      span.add(attribute("leasehold.leader", result.leader.value()));
    }
    if (result.disk_full_at != raft::kNobody) {
      span.add(attribute("leasehold.disk_full_at", result.disk_full_at.value()));
    }
  }
  span.end(at, std::move(problem));
}

}  // namespace

const char* mode_text(raft::ReadMode mode) {
  switch (mode) {
    case raft::ReadMode::lease: return "lease";
    case raft::ReadMode::quorum: return "quorum";
    case raft::ReadMode::log: return "log";
  }
  return "";
}

const char* basis_text(raft::ReadBasis basis) {
  switch (basis) {
    case raft::ReadBasis::lease: return "lease";
    case raft::ReadBasis::quorum: return "quorum";
    case raft::ReadBasis::leader: return "leader";
  }
  return "";
}

void end_read(replica::Span& span, lease::HolderInstant at, const replica::ReadResult& result,
              const char* basis) {
  if (result.index) {
    span.add(attribute("leasehold.index", result.index->value()));
    span.add(attribute("leasehold.read.basis", result.stale ? "age" : basis));
    return span.end(at);
  }
  if (result.leader != raft::kNobody) {
    span.add(attribute("leasehold.leader", result.leader.value()));
  }
  span.end(at, result.overloaded ? "refused: overloaded" : "refused: nobody answered in time");
}

replica::SpanPointer Tracing::begin_proposal(const replica::TraceContext* parent,
                                             replica::ProposeCompletion& done) const {
  replica::SpanPointer span = tracer->make("leasehold.propose", parent, clock->holder_now());
  done = [span, clock = clock, next = std::move(done)](replica::ProposeResult result) {
    // First: the caller that is answered may look for it.
    end_proposal(*span, clock->holder_now(), result);
    if (next) next(std::move(result));
  };
  return span;
}

replica::SpanPointer Tracing::begin_read(const char* mode, const replica::TraceContext* parent,
                                         replica::ReadCompletion& done) const {
  replica::SpanPointer span = tracer->make("leasehold.read", parent, clock->holder_now());
  span->add(attribute("leasehold.read.mode", mode));
  const std::string_view by(mode);
  const char* const fixed = by == "log" || by == "index" ? mode : nullptr;
  done = [span, clock = clock, fixed, next = std::move(done)](const replica::ReadResult& result) {
    end_read(*span, clock->holder_now(), result,
             fixed != nullptr ? fixed : basis_text(result.basis));
    if (next) next(result);
  };
  return span;
}

}  // namespace leasehold::node
