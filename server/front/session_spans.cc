// The spans of a session's commands: the command, and how its read was judged.
#include <leasehold/node/tracer.h>
#include <leasehold/server/front/session.h>

#include <string>
#include <string_view>
#include <utility>

namespace leasehold::server {
namespace {

using replica::attribute;

/// Its first word: the rest may show what the client has sent.
std::string error_word(std::string_view reply) {
  if (reply.empty() || reply.front() != '-') return {};
  return std::string(reply.substr(1, reply.find_first_of(" \r") - 1));
}

}  // namespace

void Session::begin_span(const CommandSpec* spec) {
  node::Tracer& tracer = *context_.state.tracer;
  const auto parent = std::exchange(trace.next, std::nullopt);
  const replica::TraceContext* const named = parent ? &*parent : nullptr;
  if (!tracer.wants(named)) return;
  const std::string_view command = spec != nullptr ? spec->name : "unknown";
  trace.span = tracer.make(command, named, selected_->group.clock().holder_now(), true);
  trace.span->add(attribute("db.operation.name", std::string(command)));
}

void Session::end_span(const replica::SpanPointer& span, std::string_view reply) {
  const lease::HolderInstant now = selected_->group.clock().holder_now();
  std::string problem = error_word(reply);
  if (!problem.empty()) span->add(attribute("db.response.status_code", problem));
  span->end(now, std::move(problem));
}

void Session::note_read_span(ReadRoute route) {
  const ReadNote& note = last_read_;
  const lease::HolderInstant at = note.look.at;
  trace.span->add(attribute("leasehold.read.mode", read_policy_name(note.policy)));
  switch (route) {
    case ReadRoute::now:
      trace.span->station("justified", at,
                          {attribute("leasehold.read.basis", read_end_name(note.end)),
                           attribute("leasehold.index", note.applied.value())});
      break;
    case ReadRoute::wait:
    case ReadRoute::ask:
      trace.span->station("asks the node", at,
                          {attribute("leasehold.reason", read_fallback_text(note.fallback))});
      break;
  }
}

void Session::note_justified(const ReadBatch& batch, const ReadNote& note) {
  const lease::HolderInstant at = batch.group->group.clock().holder_now();
  for (const std::uint64_t number : batch.places) {
    const replica::SpanPointer& span = place(number).span;
    if (!span) continue;
    span->station(note.end == ReadEnd::refused ? "refused" : "justified", at,
                  {attribute("leasehold.read.basis", read_end_name(note.end)),
                   attribute("leasehold.index", note.index.value())});
  }
}

}  // namespace leasehold::server
