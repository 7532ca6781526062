// CONFIG: the settings of this node.
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/front/duration.h>
#include <leasehold/server/front/glob.h>
#include <leasehold/server/front/log_level.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

/// A value as CONFIG GET shows it, by its name.
using Shown = std::vector<std::pair<std::string, std::string>>;
/// Makes a change that was checked, and says what is shown from then on.
using Change = std::function<Shown(LiveSettings&)>;

constexpr const char* kFixed =
    "settings are flags of 'leasehold serve' and change with a restart; CONFIG GET shows them. "
    "CONFIG SET changes maxclients, timeout, idle-timeout, slowlog-log-slower-than, "
    "slowlog-threshold, spans-ratio, loglevel and log-level, until the node stops";

/// Many clients set this before they subscribe. Events of its classes g, $ and x are always sent
/// here, and there are no events of the other types; the classes m and n are not supported.
bool is_what_is_told(std::string_view classes) {
  const bool known = classes.find_first_not_of("KEAg$lshzxetd") == std::string_view::npos;
  return known && classes.find_first_of("KE") != std::string_view::npos;
}

Change idle_after(lease::Duration time) {
  return [time](LiveSettings& live) -> Shown {
    live.set_idle_timeout(time);
    return {{"idle-timeout", format_duration(time)},
            {"timeout", std::to_string(time / std::chrono::seconds(1))}};
  };
}

/// Redis keeps every command with 0, and none with -1; a threshold of zero keeps none.
Change slow_from(lease::Duration time) {
  return [time](LiveSettings& live) -> Shown {
    live.set_slowlog_threshold(time);
    const std::int64_t shown =
        time == lease::Duration(0) ? -1 : time / std::chrono::microseconds(1);
    return {{"slowlog-threshold", format_duration(time)},
            {"slowlog-log-slower-than", std::to_string(shown)}};
  };
}

/// Each returns the reason of a refusal, or makes `change`.
std::string set_maxclients(std::string_view text, const ServerOptions& start, Change& change) {
  const auto most = parse_integer(text);
  const auto limit = static_cast<std::int64_t>(start.clients_max);
  if (!most || *most < 1 || *most > limit) {
    return fmt::format("it is a number from 1 to {}, the value with which this node started",
                       limit);
  }
  change = [most = static_cast<std::size_t>(*most)](LiveSettings& live) -> Shown {
    live.set_clients_max(most);
    return {{"maxclients", std::to_string(most)}};
  };
  return {};
}

std::string set_timeout(std::string_view text, const ServerOptions&, Change& change) {
  const auto seconds = parse_integer(text);
  if (!seconds || *seconds < 0 || *seconds > std::numeric_limits<std::int32_t>::max()) {
    return "it is a number of seconds from 0, which is never, to 2147483647";
  }
  change = idle_after(std::chrono::seconds(*seconds));
  return {};
}

std::string set_idle_timeout(std::string_view text, const ServerOptions&, Change& change) {
  const auto time = parse_duration(text);
  if (!time) return time.error().message;
  change = idle_after(time.value());
  return {};
}

std::string set_slower_than(std::string_view text, const ServerOptions&, Change& change) {
  const auto number = parse_integer(text);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 1000;
  if (!number || *number < -1 || *number > kMost) {
    return "it is a number of microseconds, or -1 for none";
  }
  lease::Duration time = std::chrono::microseconds(std::max<std::int64_t>(*number, 0));
  if (*number == 0) time = lease::Duration(1);
  change = slow_from(time);
  return {};
}

std::string set_slowlog_threshold(std::string_view text, const ServerOptions&, Change& change) {
  const auto time = parse_duration(text);
  if (!time) return time.error().message;
  change = slow_from(time.value());
  return {};
}

Change log_from(std::string_view level, std::string_view shown, const ServerOptions& start) {
  return [level = std::string(level), shown = std::string(shown), &start](LiveSettings&) -> Shown {
    if (start.set_log_level) start.set_log_level(level);
    return {{"log-level", level}, {"loglevel", shown}};
  };
}

std::string set_log_level(std::string_view text, const ServerOptions& start, Change& change) {
  const std::string_view of_redis = redis_log_level(text);
  if (of_redis.empty()) return "it is trace, debug, info, warn, error or off";
  change = log_from(text, of_redis, start);
  return {};
}

std::string set_loglevel(std::string_view text, const ServerOptions& start, Change& change) {
  const std::string name = lowered(text);
  const std::string_view level = log_level_of_redis(name);
  if (level.empty()) {
    return "argument(s) must be one of the following: debug, verbose, notice, warning";
  }
  change = log_from(level, name, start);
  return {};
}

std::string set_spans_ratio(std::string_view text, const ServerOptions& start, Change& change) {
  const auto millionths = parse_scaled(text, 1'000'000);
  if (!millionths || *millionths > 1'000'000) return "it is a fraction from 0 to 1";
  if (!start.set_spans_ratio) return "this node was started without --spans: nobody writes them";
  change = [ratio = static_cast<double>(*millionths) / 1e6, &start](LiveSettings&) -> Shown {
    start.set_spans_ratio(ratio);
    return {{"spans-ratio", fmt::format("{}", ratio)}};
  };
  return {};
}

struct Setter {
  std::string_view name;
  std::string (*set)(std::string_view text, const ServerOptions& start, Change& change);
};
constexpr Setter kSetters[] = {{"maxclients", set_maxclients},
                               {"timeout", set_timeout},
                               {"idle-timeout", set_idle_timeout},
                               {"slowlog-log-slower-than", set_slower_than},
                               {"slowlog-threshold", set_slowlog_threshold},
                               {"spans-ratio", set_spans_ratio},
                               {"loglevel", set_loglevel},
                               {"log-level", set_log_level}};

/// The text of an error, or empty. `now`: what CONFIG GET shows.
std::string check_pair(std::string_view word, std::string_view value, const ServerOptions& start,
                       const Shown& now, std::vector<Change>& changes) {
  const std::string name = lowered(word);
  const auto failed = [&](const std::string& why) {
    return fmt::format("ERR CONFIG SET failed (possibly related to argument {}) - {}", quoted(word),
                       why);
  };
  const auto setter = std::find_if(std::begin(kSetters), std::end(kSetters),
                                   [&](const Setter& one) { return one.name == name; });
  if (setter != std::end(kSetters)) {
    const std::string why = setter->set(value, start, changes.emplace_back());
    return why.empty() ? "" : failed(why);
  }
  if (name == "notify-keyspace-events") {
    if (is_what_is_told(value)) return {};
    return failed(
        "notifications are always on, of the classes g, $ and x, for those who subscribe; they "
        "cannot be switched off or extended");
  }
  const auto shown =
      std::find_if(now.begin(), now.end(), [&](const auto& one) { return one.first == name; });
  if (shown == now.end()) {
    return fmt::format("ERR Unknown option or number of arguments for CONFIG SET - {}",
                       quoted(word));
  }
  // A client that makes sure of what is so anyway.
  return shown->second == value ? "" : failed(kFixed);
}

}  // namespace

void run_config_get(Session& session, const Arguments& args, std::string& out) {
  std::vector<const std::pair<std::string, std::string>*> found;
  std::size_t budget = kPatternStepsMax;
  const std::lock_guard lock(session.context().state.config_mutex);
  for (const auto& setting : session.context().state.options.config) {
    const bool wanted = std::any_of(args.begin() + 2, args.end(), [&](std::string_view pattern) {
      return glob_matches(lowered(pattern), setting.first, budget);
    });
    if (wanted) found.push_back(&setting);
  }
  append_map(out, found.size(), session.protocol);
  for (const auto* setting : found) {
    append_bulk(out, setting->first);
    append_bulk(out, setting->second);
  }
}

/// All of it, or nothing.
void run_config_set(Session& session, const Arguments& args, std::string& out) {
  if (args.size() % 2 != 0) return session.refuse(out, "ERR syntax error");
  ServerState& state = session.context().state;
  const std::lock_guard lock(state.config_mutex);
  Shown& now = state.options.config;
  std::vector<Change> changes;
  for (std::size_t i = 2; i < args.size(); i += 2) {
    std::string problem = check_pair(args[i], args[i + 1], state.options, now, changes);
    for (std::size_t before = 2; problem.empty() && before < i; before += 2) {
      if (lowered(args[before]) != lowered(args[i])) continue;
      problem = fmt::format(
          "ERR CONFIG SET failed (possibly related to argument {}) - duplicate parameter",
          quoted(args[i]));
    }
    if (!problem.empty()) return session.refuse(out, problem);
  }
  for (const Change& change : changes) {
    for (auto& [name, value] : change(state.live)) {
      const auto at = std::find_if(now.begin(), now.end(),
                                   [&name = name](const auto& one) { return one.first == name; });
      if (at != now.end()) at->second = std::move(value);
    }
  }
  append_simple(out, "OK");
}

}  // namespace leasehold::server
