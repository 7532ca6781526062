#include <leasehold/kv/evaluate.h>

#include <charconv>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace leasehold::kv {
namespace {

/// Writes `bytes` under `key` as the next revision.
void write(std::string_view key, Bytes bytes, const std::optional<Value>& old, Backend& backend,
           Counters& counters) {
  Value value;
  value.bytes = std::move(bytes);
  value.mod_revision = ++counters.revision;
  value.create_revision = old ? old->create_revision : value.mod_revision;
  value.version = old ? old->version + 1 : 1;
  if (!old) ++counters.keys;
  backend.put(key, std::move(value));
}

Result<Reply> run(const Set& set, Backend& backend, Counters& counters) {
  const auto loaded = backend.load(set.key);
  if (!loaded) return loaded.error();
  const std::optional<Value>& old = loaded.value();

  const bool writes = set.condition == SetCondition::none ||
                      (set.condition == SetCondition::nx && !old) ||
                      (set.condition == SetCondition::xx && old);
  Reply reply = Nil{};
  if (set.get_old) {
    if (old) reply = ValueReply{old->bytes};
  } else if (writes) {
    reply = Ok{};
  }
  if (writes) write(set.key, Bytes(set.value), old, backend, counters);
  return reply;
}

Result<Reply> run(const Del& del, Backend& backend, Counters& counters) {
  // Read all first: a key that is named twice is there twice, and counts once.
  std::set<std::string_view> found;
  for (const std::string_view key : del.keys) {
    const auto loaded = backend.load(key);
    if (!loaded) return loaded.error();
    if (loaded.value()) found.insert(key);
  }
  for (const std::string_view key : found) backend.erase(key);
  if (!found.empty()) ++counters.revision;
  counters.keys -= found.size();
  return Reply(Integer{static_cast<std::int64_t>(found.size())});
}

/// Exactly what the decimal form of a 64-bit integer looks like: no blanks, no plus, no leading
/// zeros, no negative zero.
std::optional<std::int64_t> parse_integer(std::string_view text) {
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

Result<Reply> run(const IncrBy& incr, Backend& backend, Counters& counters) {
  const auto loaded = backend.load(incr.key);
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
  write(incr.key, Bytes(std::to_string(sum)), old, backend, counters);
  return Reply(Integer{sum});
}

ErrorKind kind_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::unsupported_format: return ErrorKind::unsupported_format;
    case ErrorCode::invalid_argument: return ErrorKind::limit;
    default: return ErrorKind::malformed;
  }
}

}  // namespace

Result<Reply> evaluate(std::string_view command, Backend& backend, Counters& counters) {
  const auto decoded = decode_command(command);
  if (!decoded) {
    return Reply(ErrorReply{kind_of(decoded.error().code), decoded.error().message});
  }
  return std::visit([&](const auto& c) { return run(c, backend, counters); }, decoded.value());
}

}  // namespace leasehold::kv
