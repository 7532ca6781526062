#include <leasehold/client/resp_client.h>
#include <leasehold/doctor/gather.h>
#include <leasehold/node/system_clock.h>
#include <leasehold/server/front/settings_words.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace leasehold::doctor {
namespace {

using Json = nlohmann::json;
using Timeout = client::RespClient::Timeout;

constexpr Timeout kAnswer{2000};
constexpr std::chrono::milliseconds kSamplePause{20};
/// With more, every second one goes, and those to come are taken half as often.
constexpr std::size_t kSamplesMax = 10'000;
/// A clock of centuries: sums of such fit.
constexpr std::int64_t kClockMax = std::int64_t{1} << 61U;

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// One object. Errors: those of the connection, and malformed.
Result<Json> ask(client::RespClient& client, const std::vector<std::string>& words) {
  const auto reply = client.call(words, kAnswer);
  if (!reply) return reply.error();
  if (reply.value().kind == client::RespValue::Kind::error) {
    return Error{ErrorCode::invalid_argument, reply.value().text};
  }
  Json answer = Json::parse(reply.value().text, nullptr, false);
  if (!answer.is_object()) {
    return Error{ErrorCode::malformed,
                 fmt::format("this is no answer to {} {}", words[0], words[1])};
  }
  return answer;
}

void take_status(const Json& status, ServerFacts& facts) {
  if (const auto id = status.find("id"); id != status.end() && id->is_number_unsigned()) {
    facts.node = raft::NodeId(id->get<std::uint64_t>());
  }
  // Of many groups, "id" is the number of a replica.
  const Json groups = status.value("groups", Json());
  if (groups.is_object() && groups.contains("node") && groups["node"].is_number_unsigned()) {
    facts.node = raft::NodeId(groups["node"].get<std::uint64_t>());
  }
  facts.version = text_of(status, "version");
  facts.uuid = text_of(status, "uuid");
  facts.node_problem = text_of(status, "problem");
  const Json state = status.value("state", Json::object());
  if (facts.node_problem.empty() && state.is_object())
    facts.node_problem = text_of(state, "refused");
}

void take_settings(const Json& answer, ServerFacts& facts) {
  const auto settings = server::settings_said([&answer](const std::string& name) {
    const auto said = answer.find(name);
    const bool text = said != answer.end() && said->is_string();
    return text ? std::optional(said->get<std::string>()) : std::nullopt;
  });
  if (!settings) return;
  facts.timing = settings.value().timing;
  const auto agreed = answer.find("agreed");
  facts.agreed = agreed != answer.end() && agreed->is_boolean() && agreed->get<bool>();
}

/// Errors: those of the connection, and what the server answers instead.
Result<ClockSample> sample_clock(client::RespClient& client, std::string& machine) {
  const node::SystemClock clock;
  ClockSample sample;
  sample.asked = clock.now();
  const auto reply = client.call({"LEASEHOLD", "CLOCK"}, kAnswer);
  sample.answered = clock.now();
  if (!reply) return reply.error();
  using Kind = client::RespValue::Kind;
  const std::vector<client::RespValue>& items = reply.value().items;
  if (reply.value().kind == Kind::error) {
    return Error{ErrorCode::unsupported, reply.value().text};
  }
  if (items.size() < 6 || items[1].kind != Kind::integer || items[3].kind != Kind::integer) {
    return Error{ErrorCode::malformed, "this is no answer to LEASEHOLD CLOCK"};
  }
  for (const std::size_t at : {std::size_t{1}, std::size_t{3}}) {
    if (items[at].integer >= 0 && items[at].integer <= kClockMax) continue;
    return Error{ErrorCode::malformed, "no clock shows what LEASEHOLD CLOCK answered"};
  }
  sample.holder = lease::Duration(items[1].integer);
  sample.promise = lease::Duration(items[3].integer);
  machine = items[5].text;
  return sample;
}

void thin(std::vector<ClockSample>& samples) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < samples.size(); i += 2) samples[kept++] = samples[i];
  samples.resize(kept);
}

}  // namespace

ServerFacts ask_server(const std::string& server, const client::Access& access) {
  ServerFacts facts;
  facts.server = server;
  auto client = client::RespClient::connect(server, kAnswer, access);
  if (!client) {
    facts.problem = client.error().message;
    return facts;
  }
  const auto status = ask(client.value(), {"LEASEHOLD", "STATUS"});
  if (!status) {
    facts.problem = status.error().message;
    return facts;
  }
  take_status(status.value(), facts);
  if (const auto said = ask(client.value(), {"LEASEHOLD", "SETTINGS"})) {
    take_settings(said.value(), facts);
  }
  return facts;
}

void measure_clock(ServerFacts& server, const client::Access& access,
                   const std::function<bool()>& stop) {
  if (!server.problem.empty()) return;
  auto client = client::RespClient::connect(server.server, kAnswer, access);
  std::chrono::milliseconds pause = kSamplePause;
  while (client && !stop()) {
    const auto sample = sample_clock(client.value(), server.machine);
    if (sample) {
      server.samples.push_back(sample.value());
      if (server.samples.size() >= kSamplesMax) {
        thin(server.samples);
        pause *= 2;
      }
      std::this_thread::sleep_for(pause);
      continue;
    }
    server.clock_problem = sample.error().message;
    const ErrorCode code = sample.error().code;
    if (code == ErrorCode::unsupported || code == ErrorCode::malformed) return;
    client = client::RespClient::connect(server.server, kAnswer, access);
  }
  if (!client) server.clock_problem = client.error().message;
}

}  // namespace leasehold::doctor
