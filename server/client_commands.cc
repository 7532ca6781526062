#include <leasehold/server/client_commands.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
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

constexpr std::size_t kColumns = 9;
using Row = std::array<std::string, kColumns>;

std::string members_text(const Json& members) {
  std::string out;
  for (const Json& member : members) {
    out += (out.empty() ? "" : " ") + member.at("id").dump();
    if (!member.at("voter").get<bool>()) out += "(learner)";
    if (!member.at("connected").get<bool>()) out += "(down)";
  }
  return out;
}

Row row_of(const std::string& server, const Json& status) {
  const double lease_ms = status.at("lease_left").get<double>();
  char lease[32] = "-";
  if (lease_ms > 0) std::snprintf(lease, sizeof(lease), "%.0f ms", lease_ms);
  const auto leader = status.at("leader").get<std::uint64_t>();
  std::string members = members_text(status.at("members"));
  if (!status.at("formed").get<bool>()) {
    members = "not formed, waiting for";
    for (const Json& id : status.at("missing")) members += " " + id.dump();
  }
  return {server,
          status.at("id").dump(),
          status.at("role").get<std::string>(),
          status.at("term").dump(),
          leader == 0 ? "-" : std::to_string(leader),
          status.at("commit").dump(),
          status.at("applied").dump(),
          lease,
          members};
}

void print_table(const std::vector<Row>& rows) {
  std::array<std::size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < kColumns; ++i) {
      line += row[i];
      if (i + 1 < kColumns) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::cout << line << "\n";
  }
}

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

int run_status(const std::vector<std::string>& servers, bool json, Timeout timeout) {
  std::vector<Row> rows = {
      {"server", "id", "role", "term", "leader", "commit", "applied", "lease left", "members"}};
  Json list = Json::array();
  bool all_answered = true;
  bool leased = false;
  for (const std::string& server : servers) {
    auto status = fetch_status(server, timeout);
    Json object = Json::object({{"server", server}});
    if (status) {
      leased = leased || (status.value().at("role") == "leader" &&
                          status.value().at("lease_left").get<double>() > 0);
      rows.push_back(row_of(server, status.value()));
      object.update(status.value());
    } else {
      all_answered = false;
      const std::string& message = status.error().message;
      rows.push_back({server, "-", "unreachable", "-", "-", "-", "-", "-", message});
      for (const char* key :
           {"id", "role", "term", "leader", "commit", "applied", "lease_left", "members"}) {
        object[key] = nullptr;
      }
      object["error"] = message;
    }
    list.push_back(std::move(object));
  }
  if (json) {
    std::cout << list.dump(2) << "\n";
  } else {
    print_table(rows);
  }
  return all_answered && leased ? 0 : 1;
}

Result<RespValue> run_anywhere(const std::vector<std::string>& servers,
                               const std::vector<std::string>& words, Timeout timeout) {
  const auto deadline = Clock::now() + timeout;
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
    std::this_thread::sleep_for(kRetryPause);
  }
}

int run_key_command(const std::vector<std::string>& servers, const std::vector<std::string>& words,
                    Timeout timeout) {
  const auto reply = run_anywhere(servers, words, timeout);
  if (!reply) {
    std::cerr << "leasehold: " << reply.error().message << "\n";
    return reply.error().code == ErrorCode::unavailable ? 3 : 2;
  }
  const RespValue& value = reply.value();
  switch (value.kind) {
    case RespValue::Kind::error:
      std::cerr << "leasehold: " << value.text << "\n";
      return value.is_error("UNKNOWNOUTCOME") ? 3 : 2;
    case RespValue::Kind::null:
      std::cerr << (is_read(words) ? "leasehold: no such key\n" : "leasehold: the key exists\n");
      return 1;
    case RespValue::Kind::integer:
      std::cout << value.integer << "\n";
      return words.front() == "DEL" && value.integer == 0 ? 1 : 0;
    case RespValue::Kind::simple:
    case RespValue::Kind::bulk: std::cout << value.text << "\n"; return 0;
    case RespValue::Kind::array: break;
  }
  std::cerr << "leasehold: a reply of an unexpected kind\n";
  return 2;
}

}  // namespace leasehold::server
