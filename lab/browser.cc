// What the page calls: one lab at a time, in text and numbers.
#include <leasehold/lab/lab.h>
#include <leasehold/lab/rehearsal.h>
#include <leasehold/lab/scenario_visit.h>
#include <leasehold/story/scenario.h>
#include <leasehold/story/trace_file.h>

#include <emscripten/emscripten.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace {

using leasehold::lab::Lab;
using std::chrono::milliseconds;

/// Of the one page.
std::unique_ptr<Lab>& lab() {
  static std::unique_ptr<Lab> present;
  return present;
}

/// The answer of the newest call, until the next one.
const char* say(std::string text) {
  static std::string said;
  said = std::move(text);
  return said.c_str();
}

/// A line each.
std::string listed(const char* mark, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += mark + line + "\n";
  return text;
}

}  // namespace

extern "C" {

/// Begins a visit at its start. Returns what is wrong with it, or nothing.
EMSCRIPTEN_KEEPALIVE const char* lab_open(const char* link) {
  const auto visit = leasehold::lab::parse_visit(link);
  if (!visit) return say(visit.error().message);
  lab() = std::make_unique<Lab>(visit.value());
  return say("");
}

/// Adds a step. Returns what is wrong with it, or nothing.
EMSCRIPTEN_KEEPALIVE const char* lab_add(const char* text) {
  if (!lab()) return say("no visit has begun");
  const auto step = leasehold::lab::parse_step(text, lab()->visit().all(), lab()->visit().groups);
  if (!step) return say(step.error().message);
  const auto added = lab()->add(step.value());
  return say(added ? "" : added.error().message);
}

/// Up to this true time, if it is not in the past. Returns what happened, one JSON object a line.
EMSCRIPTEN_KEEPALIVE const char* lab_run(double end_ms) {
  if (!lab()) return say("");
  const auto end = milliseconds(static_cast<std::int64_t>(end_ms));
  if (end >= lab()->now()) lab()->run(end);
  std::string lines;
  for (const auto& record : lab()->take_records()) {
    lines += leasehold::story::encode_record(record) + "\n";
  }
  return say(std::move(lines));
}

EMSCRIPTEN_KEEPALIVE const char* lab_hash() {
  return say(lab() ? fmt::format("{:016x}", lab()->hash()) : "");
}

/// The first finding of any oracle so far, behind the oracle's name; nothing if there is none.
EMSCRIPTEN_KEEPALIVE const char* lab_violation() {
  return say(lab() ? lab()->violation() : "");
}

/// Which step so far named a message that was not under way; nothing if none did.
EMSCRIPTEN_KEEPALIVE const char* lab_refusal() {
  return say(lab() ? lab()->refusal() : "");
}

/// The whole visit, as a link holds it.
EMSCRIPTEN_KEEPALIVE const char* lab_link() {
  return say(lab() ? leasehold::lab::visit_text(lab()->visit()) : "");
}

/// What the production code says to settings: "" or why it refuses them.
EMSCRIPTEN_KEEPALIVE const char* lab_check(const char* link) {
  const auto visit = leasehold::lab::parse_visit(link);
  return say(visit ? "" : visit.error().message);
}

/// U(D) of the present visit, in nanoseconds.
EMSCRIPTEN_KEEPALIVE double lab_usable() {
  if (!lab()) return 0;
  const auto& timing = lab()->visit().timing;
  return static_cast<double>(timing.usable(timing.lease).count());
}

/// A scenario file as a visit, in lines: "=" and its link, "!" and each command without a
/// counterpart, "?" and each look that was left out; or only "!" and why it is no scenario.
EMSCRIPTEN_KEEPALIVE const char* lab_from_scenario(const char* text) {
  const auto file = leasehold::story::parse_scenario("the file", text);
  if (!file) return say("!" + file.error().message + "\n");
  const auto asked = leasehold::lab::visit_of_scenario(file.value());
  if (!asked) return say("!" + asked.error().message + "\n");
  const auto& visit = asked.value();
  const auto end = visit.until / milliseconds(1);
  return say(fmt::format("={}&t={}\n", leasehold::lab::visit_text(visit.visit), end) +
             listed("!", visit.without) + listed("?", visit.left_out));
}

/// A scenario file as it runs on its own cores: a trace, or "!" and why it does not run.
EMSCRIPTEN_KEEPALIVE const char* lab_play_scenario(const char* text) {
  const auto file = leasehold::story::parse_scenario("the file", text);
  if (!file) return say("!" + file.error().message);
  std::string lines;
  const auto outcome = leasehold::story::run_scenario(
      file.value(), [&lines](const leasehold::story::Record& record) {
        lines += leasehold::story::encode_record(record) + "\n";
      });
  return say(outcome.failed ? "!" + outcome.problems.back() : std::move(lines));
}

/// The visit up to this time as a scenario file, or "!" and why it cannot be one.
EMSCRIPTEN_KEEPALIVE const char* lab_to_scenario(const char* link, double end_ms) {
  const auto visit = leasehold::lab::parse_visit(link);
  if (!visit) return say("!" + visit.error().message);
  const auto text = leasehold::lab::scenario_of_visit(
      visit.value(), milliseconds(static_cast<std::int64_t>(end_ms)));
  return say(text ? text.value() : "!" + text.error().message);
}

EMSCRIPTEN_KEEPALIVE const char* lab_rehearse(double seed) {
  return say(
      fmt::format("{:016x}", leasehold::lab::rehearse(static_cast<std::uint64_t>(seed)).hash));
}
}
