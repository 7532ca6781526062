// LEASEHOLD WATCH, UNWATCH and RANGE: what happens to keys, and what they are at a revision
// (docs/watch.md).
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/front/listening.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

constexpr const char* kWatchForm =
    "ERR expected LEASEHOLD WATCH KEY key | PREFIX prefix ... [FROM revision] [VALUES]";
constexpr const char* kRangeForm =
    "ERR expected LEASEHOLD RANGE prefix [AFTER key] [COUNT count] [VALUES], or LEASEHOLD RANGE "
    "key EXACT [VALUES]";
constexpr std::uint32_t kRangeCount = 100;
constexpr std::uint32_t kRangeCountMax = 1000;

struct Wish {
  kv::KeyFilter filter;
  std::optional<std::uint64_t> from;
  bool values = false;
};

/// The text of an error, or empty.
std::string parse_watch(const Arguments& args, Wish& wish) {
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 2; i < args.size(); ++i) {
    if (equals_ignoring_case(args[i], "values")) {
      wish.values = true;
      continue;
    }
    if (i + 1 == args.size()) return kWatchForm;
    const std::string_view word = args[i++];
    if (equals_ignoring_case(word, "from")) {
      const auto from = parse_integer(args[i]);
      if (!from || *from < 1)
        return fmt::format("ERR {} is not a revision: they begin at 1", quoted(args[i]));
      wish.from = static_cast<std::uint64_t>(*from);
      continue;
    }
    const bool key = equals_ignoring_case(word, "key");
    if (!key && !equals_ignoring_case(word, "prefix")) return kWatchForm;
    if (args[i].size() > kv::kKeyBytesMax) {
      return fmt::format("ERR the key is longer than {} bytes", kv::kKeyBytesMax);
    }
    key ? wish.filter.add_key(args[i]) : wish.filter.add_prefix(args[i]);
    bytes += args[i].size();
    if (++count > kInterestsMax || bytes > kInterestBytesMax) {
      return fmt::format(
          "ERR a connection watches at most {} keys and prefixes, with {} bytes together",
          kInterestsMax, kInterestBytesMax);
    }
  }
  return wish.filter.empty() ? kWatchForm : "";
}

struct RangeWish {
  std::optional<std::string_view> after;
  std::optional<std::uint32_t> count;
  bool values = false;
  bool exact = false;  ///< the key of that name only
};

/// The text of an error, or empty.
std::string parse_range(const Arguments& args, RangeWish& wish) {
  for (std::size_t i = 3; i < args.size(); ++i) {
    if (equals_ignoring_case(args[i], "values")) {
      wish.values = true;
      continue;
    }
    if (equals_ignoring_case(args[i], "exact")) {
      wish.exact = true;
      continue;
    }
    if (i + 1 == args.size()) return kRangeForm;
    const std::string_view word = args[i++];
    if (equals_ignoring_case(word, "after")) {
      wish.after = args[i];
    } else if (equals_ignoring_case(word, "count")) {
      const auto count = parse_integer(args[i]);
      if (!count || *count < 1 || *count > kRangeCountMax) {
        return fmt::format("ERR COUNT is a number from 1 to {}", kRangeCountMax);
      }
      wish.count = static_cast<std::uint32_t>(*count);
    } else {
      return kRangeForm;
    }
  }
  return wish.exact && (wish.after || wish.count) ? kRangeForm : "";
}

/// With which revision the group has taken the slot of what is watched.
std::uint64_t taken_at(const Session& session, const kv::KeyFilter& filter) {
  if (!session.context().groups.many()) return 0;
  const auto& texts = filter.keys().empty() ? filter.prefixes() : filter.keys();
  return session.group().store.slots().taken_at(kv::slot_of(*texts.begin()));
}

}  // namespace

void run_leasehold_watch(Session& session, const Arguments& args, std::string& out) {
  Wish wish;
  if (const std::string problem = parse_watch(args, wish); !problem.empty()) {
    return session.refuse(out, problem);
  }
  if (session.watching() || session.subscribed()) {
    return session.refuse(out,
                          "ERR this connection watches or has subscribed already: LEASEHOLD "
                          "UNWATCH or RESET ends it");
  }
  const auto figures = session.group().store.events().figures();
  const std::uint64_t next = figures.head + 1;
  const std::uint64_t from = wish.from.value_or(next);
  if (from > next) {
    return session.refuse(
        out,
        fmt::format(
            "ERR revision {} does not exist yet, the newest one is {}. If you have seen it, this "
            "group was made of an older backup: read the keys again",
            from - 1, figures.head));
  }
  // What changed before the slot came is not among the changes here.
  const bool elsewhere = from <= taken_at(session, wish.filter);
  const bool lost = from < figures.first || elsewhere;
  if (lost) session.context().counters->watch_resyncs.add();
  const std::uint64_t begins =
      session.watch(std::move(wish.filter), lost ? next : from, wish.values);
  append_array(out, 2);
  append_bulk(out, lost ? "resync" : "watching");
  append_integer(out, static_cast<std::int64_t>(begins));
}

void run_leasehold_unwatch(Session& session, const Arguments&, std::string& out) {
  if (session.watching()) session.stop_listening();
  append_simple(out, "OK");
}

bool is_exact_range(const Arguments& args) {
  RangeWish wish;
  return parse_range(args, wish).empty() && wish.exact;
}

void scan_range(StoreReader& reader, const Arguments& args, std::string& out) {
  RangeWish wish;
  if (const std::string problem = parse_range(args, wish); !problem.empty()) {
    return reader.refuse(out, problem);
  }
  const std::uint32_t count = wish.exact ? 1 : wish.count.value_or(kRangeCount);
  auto found = reader.group.store.rows(args[2], wish.after, count,
                                       wish.values ? kv::Load::whole : kv::Load::revisions);
  if (!found) return append_error(out, "ERR the store failed: " + found.error().message);
  kv::Rows& rows = found.value();
  if (wish.exact) {
    // What begins with the key comes behind it.
    std::erase_if(rows.rows, [&](const kv::Row& row) { return row.key != args[2]; });
    rows.more = false;
  }
  append_array(out, 3);
  append_integer(out, static_cast<std::int64_t>(rows.revision));
  if (rows.more) {
    append_bulk(out, rows.rows.back().key);
  } else {
    append_null(out, reader.protocol);
  }
  append_array(out, rows.rows.size());
  for (const kv::Row& row : rows.rows) {
    append_array(out, wish.values ? 6 : 5);
    append_bulk(out, row.key);
    append_integer(out, static_cast<std::int64_t>(row.value.mod_revision));
    append_integer(out, static_cast<std::int64_t>(row.value.create_revision));
    append_integer(out, static_cast<std::int64_t>(row.value.version));
    append_integer(out, told_lease(row.value.lease));
    if (wish.values) append_bulk(out, row.value.bytes.view());
  }
}

}  // namespace leasehold::server
