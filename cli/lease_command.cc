#include <leasehold/cli/commands.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/holder_flags.h>
#include <leasehold/cli/key_command.h>
#include <leasehold/cli/nearest_word.h>
#include <leasehold/grant/ttl_warning.h>
#include <leasehold/server/front/duration.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

constexpr const char* kLeaseText = R"(
Actions:
  grant                     make a lease, and print its id and its fencing token
  renew LEASE ...           start the time to live of each lease again
  revoke LEASE              end the lease and delete its keys
  info LEASE                show its holder and its keys (or info --name NAME)
  list                      show all leases
  attach LEASE KEY          the key is deleted when the lease ends
  detach KEY                the key stays when the lease ends
LEASE is an id or a name; a number is an id. Write -- before a key that begins with a dash.
To hold a lease while a command runs: leasehold lock.

Example:
  leasehold lease grant --ttl 30s --name printer --servers 10.0.0.1:7201)";

using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

/// As many as the store lists at once.
constexpr std::size_t kPage = 4096;
/// Items of a lease in an answer without its keys.
constexpr std::size_t kListed = 10;

/// Names, holders and keys are bytes of any kind.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_lease(const client::RespValue& info) {
  return info.kind == client::RespValue::Kind::array && info.items.size() >= kListed;
}

Json object_of(const client::RespValue& info) {
  const std::vector<client::RespValue>& items = info.items;
  Json lease = {{"id", items[0].integer},
                {"token", items[1].integer},
                {"ttl_ms", items[2].integer},
                {"name", items[3].text},
                {"holder", items[4].text}};
  const bool listed = items.size() == kListed;
  if (!listed) {
    lease["keys"] = Json::array();
    for (const client::RespValue& key : items[5].items) lease["keys"].push_back(key.text);
  }
  const std::size_t terms = listed ? 5 : 6;
  lease["grace_ms"] = items[terms].integer;
  lease["soft"] = items[terms + 1].integer != 0;
  lease["delay_ms"] = items[terms + 2].integer;
  lease["delayed"] = items[terms + 3].integer != 0;
  lease["asked_at_ms"] = items[terms + 4].integer;
  if (items.size() < terms + 7) return lease;
  // Null where another node leads.
  const auto known = [&items](std::size_t at) {
    return items[at].kind == client::RespValue::Kind::integer ? Json(items[at].integer) : Json();
  };
  lease["left_ms"] = known(terms + 5);
  lease["renewed_at_ms"] = known(terms + 6);
  return lease;
}

std::string duration_of(const Json& milliseconds) {
  return server::format_duration(std::chrono::milliseconds(milliseconds.get<std::int64_t>()));
}

std::string line_of(const Json& lease) {
  std::string line = fmt::format("{}  token {}  ttl {}", lease.at("id").dump(),
                                 lease.at("token").dump(), duration_of(lease.at("ttl_ms")));
  if (const Json left = lease.value("left_ms", Json()); left.is_number()) {
    const bool graced = left < 0 && lease.at("grace_ms") != 0;
    line += graced ? "  in its grace period" : "  left " + duration_of(std::max(left, Json(0)));
  }
  if (lease.at("grace_ms") != 0) line += "  grace " + duration_of(lease.at("grace_ms"));
  if (lease.at("soft") == true) line += "  soft";
  if (lease.at("delay_ms") != 0) line += "  delay " + duration_of(lease.at("delay_ms"));
  for (const char* field : {"name", "holder"}) {
    const auto text = lease.value(field, std::string());
    if (!text.empty()) line += fmt::format("  {} {}", field, text);
  }
  if (lease.at("delayed") == true) line += "  expired, its lock delay keeps the name";
  for (const Json& key : lease.value("keys", Json::array())) {
    line += "\n  " + key.get<std::string>();
  }
  return line;
}

struct WantedLease {
  std::vector<std::string> servers;
  client::RespClient::Timeout timeout{5000};
  Words words;
  lease::Duration ttl = std::chrono::seconds(10);
  std::optional<std::string> name;
  std::optional<std::string> holder;
  std::optional<std::string> id;
  grant::LeaseTerms terms;
  bool json = false;
};

class LeaseCommand {
 public:
  explicit LeaseCommand(const WantedLease& wanted) : wanted_(wanted), json_(wanted.json) {}

  int run() {
    if (wanted_.words.empty()) return misused("lease", "expected an action");
    const std::string action = wanted_.words.front();
    const Words words(wanted_.words.begin() + 1, wanted_.words.end());
    if (action == "grant" && words.empty()) return grant();
    if (action == "renew" && !words.empty()) return renew(words);
    if (action == "revoke" && words.size() == 1) return plain({"LEASE.REVOKE", words[0]});
    if (action == "attach" && words.size() == 2) return plain({"LEASE.ATTACH", words[0], words[1]});
    if (action == "detach" && words.size() == 1) return plain({"LEASE.DETACH", words[0]});
    if (action == "info" && words.size() + (wanted_.name ? 1U : 0U) == 1) return info(words);
    if (action == "list" && words.empty()) return list();
    static const Words kActions = {"grant", "renew", "revoke", "info", "list", "attach", "detach"};
    const bool known = std::find(kActions.begin(), kActions.end(), action) != kActions.end();
    return misused("lease",
                   fmt::format("'{}' {}", action,
                               known ? "has other arguments"
                                     : "is not an action" + did_you_mean(action, kActions)));
  }

 private:
  static int unexpected() {
    return fail("lease", "a reply of an unexpected kind", kOutcomeUnknown);
  }

  /// None: the failure is printed, and status_ is the exit status.
  std::optional<client::RespValue> ask(const Words& words, Repeat repeat) {
    auto reply = run_anywhere(wanted_.servers, words, wanted_.timeout, repeat);
    if (!reply) {
      const ErrorCode code = reply.error().code;
      status_ = code == ErrorCode::invalid_argument ? kUsage
                : code == ErrorCode::unavailable    ? kOutcomeUnknown
                                                    : kNotExecuted;
      fail("lease", reply.error().message, status_);
      return std::nullopt;
    }
    const client::RespValue& value = reply.value();
    if (value.kind != client::RespValue::Kind::error) return std::move(reply).value();
    const bool no = value.is_error("NOLEASE") || value.is_error("LEASETAKEN");
    status_ = no ? kNo : value.is_error("UNKNOWNOUTCOME") ? kOutcomeUnknown : kNotExecuted;
    fail("lease", value.text, status_);
    return std::nullopt;
  }

  int grant() {
    const grant::LeaseTerms& terms = wanted_.terms;
    if (const char* problem = terms.problem(!wanted_.name.value_or("").empty())) {
      return misused("lease", problem);
    }
    Words words = {"LEASE.GRANT", std::to_string(wanted_.ttl / std::chrono::milliseconds(1))};
    const auto add = [&words](const char* word, const std::optional<std::string>& text) {
      if (text) words.insert(words.end(), {word, *text});
    };
    add("name", wanted_.name);
    add("holder", wanted_.holder);
    add("id", wanted_.id);
    if (terms.grace.count() > 0) add("grace", std::to_string(terms.grace.count()));
    if (terms.soft) words.emplace_back("soft");
    if (terms.delay.count() > 0) add("delay", std::to_string(terms.delay.count()));
    const auto granted = ask(words, Repeat::never);
    if (!granted) return status_;
    if (granted->items.size() < 2) return unexpected();
    const char* const warning = grant::ttl_warning(wanted_.ttl);
    if (warning != nullptr) std::cerr << "leasehold lease: granted; but " << warning << std::endl;
    const std::int64_t id = granted->items.at(0).integer;
    const std::int64_t token = granted->items.at(1).integer;
    if (json_) {
      std::cout << Json({{"id", id}, {"token", token}}).dump() << std::endl;
    } else {
      std::cout << id << "  token " << token << std::endl;
    }
    return 0;
  }

  int renew(const Words& ids) {
    Words words = {"LEASE.RENEW"};
    words.insert(words.end(), ids.begin(), ids.end());
    const auto renewed = ask(words, Repeat::read);
    if (!renewed) return status_;
    if (renewed->items.size() != ids.size()) return unexpected();
    Json all = Json::array();
    int status = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const client::RespValue& ttl = renewed->items[i];
      const bool gone = ttl.kind == client::RespValue::Kind::null;
      if (gone) status = kNo;
      all.push_back({{"id", ids[i]}, {"ttl_ms", gone ? Json() : Json(ttl.integer)}});
      if (json_) continue;
      if (gone) {
        fail("lease", "there is no lease " + ids[i], kNo);
      } else {
        std::cout << ids[i] << "  ttl "
                  << server::format_duration(std::chrono::milliseconds(ttl.integer)) << std::endl;
      }
    }
    if (json_) std::cout << text_of(all) << std::endl;
    return status;
  }

  /// 0 is "no such key".
  int plain(const Words& words) {
    const auto reply = ask(words, Repeat::never);
    if (!reply) return status_;
    if (reply->kind == client::RespValue::Kind::integer && reply->integer == 0) {
      return fail("lease", "there is no key " + words.back(), kNo);
    }
    if (json_) std::cout << "{}" << std::endl;
    return 0;
  }

  int info(const Words& words) {
    const auto reply = ask(
        words.empty() ? Words{"LEASE.INFO", "NAME", *wanted_.name} : Words{"LEASE.INFO", words[0]},
        Repeat::read);
    if (!reply) return status_;
    if (reply->kind == client::RespValue::Kind::null)
      return fail("lease", "there is no such lease", kNo);
    if (!is_lease(*reply)) return unexpected();
    const Json lease = object_of(*reply);
    std::cout << (json_ ? text_of(lease) : line_of(lease)) << std::endl;
    return 0;
  }

  int list() {
    Json all = Json::array();
    for (std::string after = "0";;) {
      const auto page =
          ask({"LEASE.LIST", "AFTER", after, "COUNT", std::to_string(kPage)}, Repeat::read);
      if (!page) return status_;
      for (const client::RespValue& one : page->items) {
        if (!is_lease(one)) return unexpected();
        all.push_back(object_of(one));
        if (!json_) std::cout << line_of(all.back()) << "\n";
      }
      if (page->items.size() < kPage) break;
      after = all.back().at("id").dump();
    }
    if (json_) std::cout << text_of(all);
    std::cout << (json_ ? "\n" : "") << std::flush;
    return 0;
  }

  const WantedLease& wanted_;
  const bool json_;
  int status_ = 0;
};

void add_text(Flags& flags, const Flag& flag, std::optional<std::string>& text) {
  flags.add(flag, [&text](const std::string& value) -> Result<void> {
    text = value;
    return {};
  });
}

}  // namespace

Run add_lease(Flags& flags) {
  const auto wanted = std::make_shared<WantedLease>();
  flags.add_words(wanted->words, "ACTION ... --servers HOST:PORT,... [OPTIONS]");
  flags.add_servers(wanted->servers);
  flags.add({"--ttl", "DURATION", "grant: how long the lease lives after its last renewal", "10s"},
            wanted->ttl);
  add_text(
      flags,
      {"--name", "NAME", "grant: a name that no other lease has; info: the lease of this name"},
      wanted->name);
  add_text(flags, {"--holder", "TEXT", "grant: name of the holder, which others see"},
           wanted->holder);
  add_text(flags, {"--id", "ID", "grant: a number of your own, up to 4294967295"}, wanted->id);
  add_term(flags,
           {"--grace", "DURATION",
            "grant: grace period after the time to live, in which a renewal still keeps the lease"},
           grant::kLeaseGraceMax, wanted->terms.grace);
  flags.add(
      {"--soft", "",
       "grant: another request for the name ends the grace period, and gets the name at a later "
       "try; needs --grace and --name, excludes --delay"},
      wanted->terms.soft);
  add_term(flags,
           {"--delay", "DURATION",
            "grant: after the lease expires, nobody gets its name for this time; needs --name"},
           grant::kLeaseDelayMax, wanted->terms.delay);
  flags.add({"--timeout", "DURATION", "How long to try", "5s"}, wanted->timeout);
  flags.add({"--json", "", "Objects instead of lines"}, wanted->json);
  flags.set_footer(kLeaseText);
  return [wanted] { return LeaseCommand(*wanted).run(); };
}

}  // namespace leasehold::cli
