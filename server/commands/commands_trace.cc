// LEASEHOLD TRACE: the protocol of this node is recorded, and taken part by part. LEASEHOLD
// TRACEPARENT: a client's own trace.
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/commands/map_reply.h>
#include <leasehold/server/commands/report.h>
#include <leasehold/server/front/duration.h>
#include <leasehold/server/front/resp.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace leasehold::server {
namespace {

constexpr const char* kTraceForms =
    "ERR expected LEASEHOLD TRACE START span, as in START 10s, or NEXT id or STOP id with the id "
    "that START gave";

std::string trace_error(const Error& error) {
  std::string reply;
  const bool later = error.code == ErrorCode::in_use || error.code == ErrorCode::unavailable;
  append_error(reply, (later ? "TRYAGAIN " : "ERR ") + error.message);
  return reply;
}

/// How this node has answered reads so far, in all groups.
void add_reads(MapReply& reply, const ServerState& state) {
  const auto count = [&state](Count Counters::*counter) {
    return static_cast<std::int64_t>(state.sum(counter));
  };
  reply.add("reads_lease", count(&Counters::lease_hits));
  reply.add("reads_lease_waited", count(&Counters::answered_lease));
  reply.add("reads_quorum", count(&Counters::answered_quorum));
  reply.add("reads_leader", count(&Counters::answered_leader));
  reply.add("reads_log", count(&Counters::answered_log));
  reply.add("reads_stale", count(&Counters::stale_hits));
  reply.add("reads_refused", count(&Counters::reads_refused));
}

std::int64_t ns(lease::HolderInstant at) {
  return at.since_origin().count();
}

void start_trace(Session& session, std::string_view span, std::string& out) {
  const auto length = parse_duration(span.substr(0, kQuotedBytesMax));
  if (!length) return session.refuse(out, "ERR " + length.error().message);
  if (length.value() <= lease::Duration(0) || length.value() > kTraceSpanMax) {
    return session.refuse(out, "ERR a recording lasts for more than 0, and for 10 minutes at most");
  }
  const ServerState& state = session.context().state;
  const Protocol protocol = session.protocol;
  session.group().trace.start(length.value(), [&state, protocol, answer = session.answer_later()](
                                                  const Result<TraceBegun>& begun) {
    if (!begun) return answer(trace_error(begun.error()));
    MapReply reply;
    reply.add("id", static_cast<std::int64_t>(begun.value().id));
    reply.add("node", static_cast<std::int64_t>(begun.value().node.value()));
    reply.add("process", static_cast<std::int64_t>(begun.value().process.value()));
    reply.add("holder_ns", ns(begun.value().at));
    reply.add("version", kVersion);
    reply.add("machine", state.options.machine);
    add_reads(reply, state);
    std::string text;
    reply.finish(text, protocol);
    answer(std::move(text));
  });
}

/// What holds now, and then the records.
std::string taken_reply(const TraceTaken& taken, const ServerState& state, Protocol protocol) {
  MapReply head;
  head.add("holder_ns", ns(taken.at));
  head.add("dropped", static_cast<std::int64_t>(taken.dropped));
  head.add("more", taken.more ? 1 : 0);
  head.add("ended", taken.ended);
  add_reads(head, state);
  std::string reply;
  append_array(reply, 2);
  head.finish(reply, protocol);
  append_array(reply, taken.records.size());
  for (const std::string& record : taken.records) append_bulk(reply, record);
  return reply;
}

}  // namespace

void run_leasehold_trace(Session& session, const Arguments& args, std::string& out) {
  if (args.size() != 4) return session.refuse(out, kTraceForms);
  if (!session.group().trace.start || !session.group().here()) {
    return session.refuse(out,
                          "ERR this node has no replica of the group: there is nothing to "
                          "record here");
  }
  if (equals_ignoring_case(args[2], "start")) return start_trace(session, args[3], out);
  const bool next = equals_ignoring_case(args[2], "next");
  const auto id = parse_integer(args[3]);
  if (!id || *id < 0 || (!next && !equals_ignoring_case(args[2], "stop"))) {
    return session.refuse(out, kTraceForms);
  }
  // Thousands of records are written as text.
  session.context().background->post(
      [&trace = session.group().trace, &state = session.context().state, next,
       number = static_cast<std::uint64_t>(*id), protocol = session.protocol,
       answer = session.answer_later()] {
        if (next) {
          const Result<TraceTaken> taken = trace.next(number);
          return answer(taken ? taken_reply(taken.value(), state, protocol)
                              : trace_error(taken.error()));
        }
        const Result<void> stopped = trace.stop(number);
        std::string reply;
        append_simple(reply, "OK");
        answer(stopped ? reply : trace_error(stopped.error()));
      });
}

void run_leasehold_traceparent(Session& session, const Arguments& args, std::string& out) {
  const auto parent = replica::parse_traceparent(args[2]);
  if (!parent) {
    return session.refuse(out,
                          "ERR expected LEASEHOLD TRACEPARENT 00-trace-span-flags: 32, 16 and 2 "
                          "digits from 0 to f, as in the header traceparent of W3C");
  }
  session.trace.next = *parent;
  append_simple(out, "OK");
}

}  // namespace leasehold::server
