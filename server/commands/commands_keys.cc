// Commands on keys of any type.
#include <leasehold/kv/give_way.h>
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/commands/key_flush.h>
#include <leasehold/server/commands/key_walk.h>
#include <leasehold/server/front/glob.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <random>

namespace leasehold::server {
namespace {

/// Keys that one SCAN looks at.
constexpr std::int64_t kScanKeysMax = 1000;
/// What KEYS returns at most.
constexpr std::size_t kKeysBytesMax = std::size_t{16} << 20U;
/// Among how many keys RANDOMKEY draws.
constexpr std::size_t kRandomKeysMax = 1000;

struct ScanOptions {
  std::string_view pattern = "*";
  std::size_t count = 10;
  bool strings = true;  ///< TYPE does not rule out the only type there is
};

/// The text of an error, or empty.
std::string parse_scan_options(const Arguments& args, ScanOptions& options) {
  for (std::size_t i = 2; i < args.size(); i += 2) {
    if (i + 1 >= args.size()) return "ERR syntax error";
    if (equals_ignoring_case(args[i], "match")) {
      options.pattern = args[i + 1];
      if (options.pattern.size() > kPatternBytesMax) {
        return fmt::format("ERR the pattern is longer than {} bytes", kPatternBytesMax);
      }
    } else if (equals_ignoring_case(args[i], "count")) {
      const auto count = parse_integer(args[i + 1]);
      if (!count) return kNotAnInteger;
      if (*count < 1) return "ERR syntax error";
      options.count = static_cast<std::size_t>(std::min(*count, kScanKeysMax));
    } else if (equals_ignoring_case(args[i], "type")) {
      options.strings = equals_ignoring_case(args[i + 1], "string");
    } else {
      return "ERR syntax error";
    }
  }
  return {};
}

std::optional<std::uint64_t> parse_cursor(std::string_view text) {
  std::uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

/// From `first` on, of those that are here; the number of the groups: there is none.
std::size_t group_with(const kv::SlotSet& slots, std::size_t first, const ServedGroups& groups) {
  std::size_t found = groups.all().size();
  for (std::uint32_t slot = 0; slot < kv::kSlots; ++slot) {
    const std::size_t group = groups.number_of_slot(slot);
    const bool fits = slots.test(slot) && group >= first && groups.all()[group].here();
    if (fits) found = std::min(found, group);
  }
  return found;
}

/// Where a scan goes on that is through with the group `at`; none: it has shown all keys.
std::optional<ScanPosition> next_group(ScanPosition at, const ServedGroups& groups) {
  SlotRoutes& routes = groups.routes();
  at.after.reset();
  do {
    ++at.group;
  } while (at.group < groups.all().size() && !groups.all()[at.group].here());
  if (at.before) at.group = group_with(routes.changed_since(*at.before), at.group, groups);
  if (at.group < groups.all().size()) return at;
  const std::uint64_t now = routes.version();
  const kv::SlotSet elsewhere = routes.changed_since(at.began);
  if (elsewhere.none()) return std::nullopt;
  const std::size_t again = group_with(elsewhere, 0, groups);
  if (again == groups.all().size()) return std::nullopt;
  return ScanPosition{again, std::nullopt, now, at.began};
}

void store_failed(std::string& out, const Error& error) {
  append_error(out, "ERR the store failed: " + error.message);
}

}  // namespace

std::string make_copy(const Arguments& args, kv::Operation& operation) {
  kv::Copy copy;
  copy.from = args[1];
  copy.to = args[2];
  for (std::size_t i = 3; i < args.size(); ++i) {
    if (equals_ignoring_case(args[i], "replace")) {
      copy.replace = true;
    } else if (equals_ignoring_case(args[i], "db") && i + 1 < args.size()) {
      const auto database = parse_integer(args[++i]);
      if (!database) return kNotAnInteger;
      if (*database != 0) return "ERR DB index is out of range";
    } else {
      return "ERR syntax error";
    }
  }
  if (copy.from == copy.to) return "ERR source and destination objects are the same";
  operation = copy;
  return {};
}

std::string make_dbsize(const Arguments&, kv::Operation& operation) {
  operation = kv::Size{};
  return {};
}

std::string make_del(const Arguments& args, kv::Operation& operation) {
  operation = kv::Del{{args.begin() + 1, args.end()}};
  return {};
}

std::string make_exists(const Arguments& args, kv::Operation& operation) {
  operation = kv::Exists{{args.begin() + 1, args.end()}};
  return {};
}

std::string make_object(const Arguments& args, kv::Operation& operation) {
  operation = kv::Exists{{args[2]}};
  return {};
}

std::string make_object_encoding(const Arguments& args, kv::Operation& operation) {
  operation = kv::Get{args[2]};
  return {};
}

std::string make_rename(const Arguments& args, kv::Operation& operation) {
  operation = kv::Rename{false, args[1], args[2]};
  return {};
}

std::string make_renamenx(const Arguments& args, kv::Operation& operation) {
  operation = kv::Rename{true, args[1], args[2]};
  return {};
}

void run_flush(Session& session, const Arguments& args, std::string& out) {
  const bool known =
      args.size() == 1 || (args.size() == 2 && (equals_ignoring_case(args[1], "sync") ||
                                                equals_ignoring_case(args[1], "async")));
  if (!known) return session.refuse(out, "ERR syntax error");
  if (session.refuse_when_draining(out, true)) return;
  flush_keys(session.context(), session.answer_later());
}

void scan_some(StoreReader& reader, const Arguments& args, std::string& out) {
  const auto cursor = parse_cursor(args[1]);
  if (!cursor) return reader.refuse(out, "ERR invalid cursor");
  ScanOptions options;
  if (const std::string problem = parse_scan_options(args, options); !problem.empty()) {
    return reader.refuse(out, problem);
  }
  ScanCursors& cursors = reader.state.scan_cursors;
  ScanPosition at;
  at.began = reader.routes_version;
  if (*cursor != 0) {
    const auto found = cursors.find(*cursor);
    if (!found) {
      return reader.refuse(out,
                           "ERR this node does not know the cursor (any more): cursors are good at "
                           "the node that gave them; begin again with 0");
    }
    at = *found;
  }
  // A further round looks at many keys to show few.
  const std::size_t count = at.before ? kScanKeysMax : options.count;
  kv::SlotSet slots;
  if (at.before) slots = reader.groups.routes().changed_since(*at.before);
  auto keys = reader.group.store.keys_after(at.after, count);
  if (!keys) return store_failed(out, keys.error());
  std::vector<std::string_view> found;
  std::size_t budget = kPatternStepsMax;
  std::size_t seen = 0;
  kv::GiveWay way;
  for (const std::string& key : keys.value()) {
    way.step();
    const bool wanted = !at.before || slots.test(kv::slot_of(key));
    const bool shown = wanted && glob_matches(options.pattern, key, budget) && options.strings &&
                       reader.may_show(key, budget);
    // A pattern may be dear: then fewer keys are looked at, but one at least.
    if (budget == 0 && seen > 0) break;
    ++seen;
    if (shown) found.push_back(key);
  }
  std::uint64_t next = 0;
  if (seen < keys.value().size() || seen == count) {
    at.after = keys.value()[seen - 1];
    next = cursors.add(std::move(at));
  } else if (auto further = next_group(std::move(at), reader.groups)) {
    next = cursors.add(*std::move(further));
  }
  append_array(out, 2);
  append_bulk(out, std::to_string(next));
  append_array(out, found.size());
  for (const std::string_view key : found) append_bulk(out, key);
}

std::size_t group_of_cursor(const ServerState& state, const Arguments& args, const ServedGroups&) {
  const auto cursor = parse_cursor(args[1]);
  const auto at = cursor && *cursor != 0 ? state.scan_cursors.find(*cursor) : std::nullopt;
  return at ? at->group : 0;  // one that is not known is refused
}

void scan_keys(StoreReader& reader, const Arguments& args, std::string& out) {
  if (args[1].size() > kPatternBytesMax) {
    return reader.refuse(out,
                         fmt::format("ERR the pattern is longer than {} bytes", kPatternBytesMax));
  }
  std::vector<std::string> found;
  std::size_t bytes = 0;
  std::size_t budget = kPatternStepsMax;
  std::string error;
  const Walked walked = walk_keys(
      reader.group.store,
      [&](const std::string& key) {
        if (glob_matches(args[1], key, budget) && reader.may_show(key, budget)) {
          bytes += key.size();
          found.push_back(key);
        }
        return budget > 0 && bytes <= kKeysBytesMax;
      },
      error);
  switch (walked) {
    case Walked::all: break;
    case Walked::failed: return append_error(out, "ERR the store failed: " + error);
    case Walked::keys:
      return reader.refuse(
          out,
          fmt::format("ERR there are more than {} keys: use SCAN, which goes through them in steps",
                      kWalkedKeysMax));
    case Walked::bytes:
      return reader.refuse(out, "ERR the names of all keys are too long together: use SCAN");
    case Walked::stopped:
      return reader.refuse(out, "ERR the pattern costs or finds too much at once: use SCAN");
  }
  append_array(out, found.size());
  for (const std::string_view key : found) append_bulk(out, key);
}

void scan_random(StoreReader& reader, const Arguments&, std::string& out) {
  auto keys = reader.group.store.keys_after(std::nullopt, kRandomKeysMax);
  if (!keys) return store_failed(out, keys.error());
  auto& all = keys.value();
  std::size_t budget = kPatternStepsMax;
  const auto hidden = [&](const std::string& key) { return !reader.may_show(key, budget); };
  all.erase(std::remove_if(all.begin(), all.end(), hidden), all.end());
  if (keys.value().empty()) return append_null(out, reader.protocol);
  thread_local std::minstd_rand random(std::random_device{}());
  append_bulk(out, keys.value()[random() % keys.value().size()]);
}

}  // namespace leasehold::server
