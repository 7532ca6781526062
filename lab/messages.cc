// Steps that are about one message under way.
#include <leasehold/base/assert.h>
#include <leasehold/lab/lab.h>
#include <leasehold/story/record.h>

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>

namespace leasehold::lab {

Result<sim::SimNetwork::Flight> Lab::flight_of(const Step& step) const {
  const std::optional<sim::SimNetwork::Flight> flight = network_.flight(step.node, step.message);
  if (flight) return *flight;
  const std::uint64_t sent = network_.sent_by(step.node);
  const std::string why = step.message > sent
                              ? fmt::format("it has sent {} so far", sent)
                              : "it has arrived, or was lost, or went into a link that is cut";
  return Error{ErrorCode::invalid_argument,
               fmt::format("message {} of node {} is not under way: {}", step.message,
                           step.node.value(), why)};
}

void Lab::act_on_message(const Step& step) {
  const auto found = flight_of(step);
  if (!found) {
    if (refusal_.empty()) {
      refusal_ = fmt::format("the step {}: {}", step_text(step), found.error().message);
    }
    return mark("refused", step.node, raft::Index(),
                fmt::format("{}: {}", verb_name(step.verb), found.error().message));
  }
  const sim::SimNetwork::Flight& flight = found.value();
  const Duration length = std::chrono::milliseconds(step.amount);
  const bool drops = step.verb == Verb::drop;
  mark(drops                      ? "dropped"
       : step.verb == Verb::delay ? "delayed"
                                  : "twice",
       step.node, raft::Index(),
       fmt::format("{}: {}", story::message_name(*flight.message),
                   story::message_text(*flight.message)));
  records_.back().peer = flight.to;
  records_.back().number = flight.number;
  if (!drops) records_.back().until = (flight.arrival + length).since_origin();
  switch (step.verb) {
    case Verb::drop: return network_.lose(flight);
    case Verb::delay: return network_.hold(flight, length);
    case Verb::twice: return network_.repeat(flight, length);
    default: LEASEHOLD_UNREACHABLE();
  }
}

}  // namespace leasehold::lab
