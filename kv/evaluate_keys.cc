// What the operations on keys and their values do.
#include <leasehold/base/assert.h>
#include <leasehold/kv/run.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold::kv {
namespace {

std::string sequential_key(std::string_view prefix, std::uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string key(prefix);
  key.append(kSequenceDigits - digits.size(), '0');
  return key.append(digits);
}

Reply key_exists(std::string text) {
  return ErrorReply{ErrorKind::key_exists, std::move(text)};
}

/// Exactly what the decimal form of a 64-bit integer looks like: no blanks, no plus, no leading
/// zeros, no negative zero.
std::optional<std::int64_t> parse_integer(std::string_view text) {
  // A value of 16 MiB of digits is not read to its end.
  constexpr std::size_t kLongest = std::numeric_limits<std::int64_t>::digits10 + 2;
  if (text.size() > kLongest) return std::nullopt;
  const std::string_view digits = text.substr(!text.empty() && text[0] == '-' ? 1 : 0);
  if (digits.empty() || (digits[0] == '0' && text.size() > 1)) return std::nullopt;
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

bool sum_fits(std::int64_t a, std::int64_t b) {
  using Limits = std::numeric_limits<std::int64_t>;
  return b >= 0 ? a <= Limits::max() - b : a >= Limits::min() - b;
}

Reply too_long(std::uint64_t length) {
  return ErrorReply{ErrorKind::limit, fmt::format("the value would have {} bytes, the limit is {}",
                                                  length, kValueBytesMax)};
}

}  // namespace

Result<Reply> run(const Set& set, Draft& draft) {
  const auto loaded = draft.load(set.key);
  if (!loaded) return loaded.error();
  const std::optional<Value>& old = loaded.value();

  const bool writes = set.condition == SetCondition::none ||
                      (set.condition == SetCondition::nx && !old) ||
                      (set.condition == SetCondition::xx && old);
  const grant::LeaseId lease = set.keep_lease ? Draft::lease_of(old) : set.lease;
  if (auto why = draft.cannot_attach(old, set.lease)) return Reply(*why);
  if (set.ttl && writes) {
    if (auto why = draft.cannot_time(leases_for(old, *set.ttl))) return Reply(*why);
  }
  if (set.token != grant::FencingToken(0)) {
    auto why = draft.pass_fence(set.key, set.token);
    if (!why) return why.error();
    if (why.value()) return Reply(*why.value());
  }
  Reply reply = Nil{};
  if (set.get_old) {
    if (old) reply = ValueReply{old->bytes};
  } else if (writes) {
    reply = Ok{};
  }
  if (writes && set.ttl) {
    draft.write_timed(set.key, Bytes(set.value), old, *set.ttl, set.end_ms);
  } else if (writes) {
    draft.write(set.key, Bytes(set.value), old, lease);
  }
  return reply;
}

Result<Reply> run(const SetSequential& set, Draft& draft) {
  const std::uint64_t number = draft.revision();
  std::string key = sequential_key(set.prefix, number);
  // Also if the key was deleted again: a client knows its number.
  if (draft.has_made(key)) {
    return key_exists("one transaction makes one sequential key of a prefix; nothing was done");
  }
  const auto loaded = draft.load(key);
  if (!loaded) return loaded.error();
  if (loaded.value()) {
    return key_exists(
        fmt::format("the key of this prefix and the number {} exists: a client has written it by "
                    "its name; nothing was done",
                    number));
  }
  if (auto why = draft.cannot_attach(std::nullopt, set.lease)) return Reply(*why);
  Reply reply = ValueReply{Bytes(std::string_view(key))};
  draft.write_made(std::move(key), Bytes(set.value), set.lease);
  return reply;
}

Result<Reply> run(const Del& del, Draft& draft) {
  std::size_t count = 0;
  for (const std::string_view key : del.keys) {
    const auto loaded = draft.load(key);
    if (!loaded) return loaded.error();
    if (!loaded.value()) continue;
    draft.erase(key, *loaded.value());
    ++count;
  }
  return integer(count);
}

Result<Reply> run(const DelEqual& del, Draft& draft) {
  if (del.keys.size() > 1) draft.keep_loaded();
  std::size_t count = 0;
  // A key that is named thousands of times is compared once, however long its value is.
  std::set<std::string_view> others;
  for (const std::string_view key : del.keys) {
    const auto loaded = draft.load(key);
    if (!loaded) return loaded.error();
    if (!loaded.value() || others.find(key) != others.end()) continue;
    if (loaded.value()->bytes.view() != del.value) {
      others.insert(key);
      continue;
    }
    draft.erase(key, *loaded.value());
    ++count;
  }
  return integer(count);
}

Result<Reply> run(const IncrBy& incr, Draft& draft) {
  const auto loaded = draft.load(incr.key);
  if (!loaded) return loaded.error();
  const std::optional<Value>& old = loaded.value();

  std::int64_t base = 0;
  if (old) {
    const auto parsed = parse_integer(old->bytes.view());
    if (!parsed) {
      return Reply(
          ErrorReply{ErrorKind::not_an_integer, "value is not an integer or out of range"});
    }
    base = *parsed;
  }
  if (!sum_fits(base, incr.delta)) {
    return Reply(ErrorReply{ErrorKind::overflow, "increment or decrement would overflow"});
  }
  const std::int64_t sum = base + incr.delta;
  draft.write(incr.key, Bytes(std::to_string(sum)), old, Draft::lease_of(old));
  return Reply(Integer{sum});
}

Result<Reply> run(const Append& append, Draft& draft) {
  const auto loaded = draft.load(append.key);
  if (!loaded) return loaded.error();
  const std::optional<Value>& old = loaded.value();
  const std::size_t length = (old ? old->bytes.size() : 0) + append.bytes.size();
  if (length > kValueBytesMax) return too_long(length);
  std::string whole;
  whole.reserve(length);
  if (old) whole.append(old->bytes.view());
  whole.append(append.bytes);
  draft.write(append.key, Bytes(std::move(whole)), old, Draft::lease_of(old));
  return integer(length);
}

Result<Reply> run(const SetRange& range, Draft& draft) {
  const auto loaded = draft.load(range.key);
  if (!loaded) return loaded.error();
  const std::optional<Value>& old = loaded.value();
  const std::size_t before = old ? old->bytes.size() : 0;
  if (range.bytes.empty()) return integer(before);
  const std::uint64_t end = std::uint64_t{range.offset} + range.bytes.size();
  if (end > kValueBytesMax) return too_long(end);
  std::string whole(old ? old->bytes.view() : std::string_view());
  whole.resize(std::max<std::size_t>(before, end), '\0');
  whole.replace(range.offset, range.bytes.size(), range.bytes);
  const std::size_t length = whole.size();
  draft.write(range.key, Bytes(std::move(whole)), old, Draft::lease_of(old));
  return integer(length);
}

Result<Reply> run(const GetDel& command, Draft& draft) {
  const auto loaded = draft.load(command.key);
  if (!loaded) return loaded.error();
  if (!loaded.value()) return Reply(Nil{});
  draft.erase(command.key, *loaded.value());
  return Reply(ValueReply{loaded.value()->bytes});
}

Result<Reply> run(const MSet& mset, Draft& draft) {
  std::size_t leases = 0;
  for (const auto& [key, value] : mset.pairs) {
    if (mset.condition == MSetCondition::none && !mset.ttl) break;
    const auto loaded = draft.load(key);
    if (!loaded) return loaded.error();
    const std::optional<Value>& old = loaded.value();
    if (mset.condition == MSetCondition::none_exists && old) return integer(0);
    if (mset.condition == MSetCondition::all_equal && !(old && old->bytes.view() == value)) {
      return integer(0);
    }
    if (mset.ttl) leases += leases_for(old, *mset.ttl);
  }
  if (mset.ttl) {
    if (auto why = draft.cannot_time(leases)) return Reply(*why);
  }
  for (const auto& [key, value] : mset.pairs) {
    const auto loaded = draft.load(key);
    if (!loaded) return loaded.error();
    if (mset.ttl) {
      draft.write_timed(key, Bytes(value), loaded.value(), *mset.ttl, mset.end_ms);
    } else {
      draft.write(key, Bytes(value), loaded.value(), grant::LeaseId(0));
    }
  }
  switch (mset.condition) {
    case MSetCondition::none: return Reply(Ok{});
    case MSetCondition::none_exists: return integer(1);
    case MSetCondition::all_equal: return integer(mset.pairs.size());
  }
  LEASEHOLD_UNREACHABLE();
}

Result<Reply> run(const Rename& rename, Draft& draft) {
  const auto from = draft.load(rename.from);
  if (!from) return from.error();
  if (!from.value()) return Reply(ErrorReply{ErrorKind::no_such_key, "no such key"});
  const auto to = draft.load(rename.to);
  if (!to) return to.error();
  if (rename.if_free && to.value()) return integer(0);
  if (rename.from != rename.to) draft.move(rename.from, *from.value(), rename.to, to.value());
  return rename.if_free ? integer(1) : Reply(Ok{});
}

}  // namespace leasehold::kv
