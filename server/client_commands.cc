#include <leasehold/server/client_commands.h>
#include <leasehold/server/exit_status.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <thread>
#include <utility>

namespace leasehold::server {
namespace {

using Clock = std::chrono::steady_clock;
using Timeout = RespClient::Timeout;
using Json = nlohmann::ordered_json;

/// Pause after every server has been tried once.
constexpr auto kRetryPause = std::chrono::milliseconds(20);
/// One server may take so long of the whole time.
constexpr Timeout kConnectTimeout{1000};
/// After this a person is told what takes so long.
constexpr auto kPatience = std::chrono::seconds(1);

/// "The command was not executed": another server may take it.
bool not_executed(const RespValue& reply) {
  return reply.is_error("NOLEADER") || reply.is_error("TRYAGAIN");
}

bool is_read(const std::vector<std::string>& words) {
  return words.front() == "GET";
}

}  // namespace

Result<Json> fetch_status(const std::string& server, Timeout timeout) {
  auto client = RespClient::connect(server, timeout);
  if (!client) return client.error();
  const auto reply = client.value().call({"LEASEHOLD", "STATUS"}, timeout);
  if (!reply) return reply.error();
  Json status = Json::parse(reply.value().text, nullptr, false);
  if (reply.value().kind != RespValue::Kind::bulk || !status.is_object()) {
    return Error{ErrorCode::malformed, "this is no Leasehold server: " + reply.value().text};
  }
  return status;
}

Result<RespValue> run_anywhere(const std::vector<std::string>& servers,
                               const std::vector<std::string>& words, Timeout timeout) {
  const auto start = Clock::now();
  const auto deadline = start + timeout;
  bool told = false;
  const auto left = [deadline] {
    return std::max(std::chrono::duration_cast<Timeout>(deadline - Clock::now()), Timeout(1));
  };
  std::string last = "no server was tried";
  for (;;) {
    for (const std::string& server : servers) {
      auto client = RespClient::connect(server, std::min(left(), kConnectTimeout));
      if (!client) {
        if (client.error().code == ErrorCode::invalid_argument) return client.error();
        last = server + ": " + client.error().message;
        continue;
      }
      auto reply = client.value().call(words, left());
      if (reply && !not_executed(reply.value())) return reply;
      if (reply) {
        last = server + ": " + reply.value().text;
      } else if (!is_read(words)) {
        return Error{ErrorCode::unavailable,
                     server + ": " + reply.error().message + "; the command may be executed"};
      } else {
        last = server + ": " + reply.error().message;
      }
    }
    if (Clock::now() + kRetryPause >= deadline) {
      return Error{ErrorCode::timed_out, "nobody took the command; the last answer: " + last};
    }
    if (!told && Clock::now() > start + kPatience) {
      told = true;
      std::cerr << "leasehold: still trying; the last answer: " << last << std::endl;
    }
    std::this_thread::sleep_for(kRetryPause);
  }
}

int run_key_command(const std::vector<std::string>& servers, const std::vector<std::string>& words,
                    Timeout timeout) {
  const auto reply = run_anywhere(servers, words, timeout);
  if (!reply) {
    std::cerr << "leasehold: " << reply.error().message << "\n";
    switch (reply.error().code) {
      case ErrorCode::invalid_argument: return kUsage;
      case ErrorCode::unavailable: return kOutcomeUnknown;
      default: return kNotExecuted;
    }
  }
  const RespValue& value = reply.value();
  switch (value.kind) {
    case RespValue::Kind::error:
      std::cerr << "leasehold: " << value.text << "\n";
      return value.is_error("UNKNOWNOUTCOME") ? kOutcomeUnknown : kNotExecuted;
    case RespValue::Kind::null:
      std::cerr << (is_read(words) ? "leasehold: no such key\n" : "leasehold: the key exists\n");
      return kNo;
    case RespValue::Kind::integer:
      std::cout << value.integer << "\n";
      return words.front() == "DEL" && value.integer == 0 ? kNo : 0;
    case RespValue::Kind::simple:
    case RespValue::Kind::bulk: std::cout << value.text << "\n"; return 0;
    case RespValue::Kind::array: break;
  }
  std::cerr << "leasehold: a reply of an unexpected kind\n";
  return kOutcomeUnknown;
}

}  // namespace leasehold::server
