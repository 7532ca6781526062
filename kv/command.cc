// A command: {format u8 = 1}{type u8} and then
//   1 set      {flags u8: bits 0-1 condition, bit 2 get_old}{key length u32}{key}{value: the rest}
//   2 del      {count u32} and count times {key length u32}{key}
//   3 incr_by  {delta i64, two's complement}{key: the rest}
// A reply: {format u8 = 1}{type u8} and then
//   1 ok, 2 nil   nothing
//   3 integer     {i64}
//   4 value       {the rest}
//   5 error       {kind u8}{text: the rest}
// Numbers are big-endian. Every byte is accounted for: a command has exactly one encoding.
#include <leasehold/kv/command.h>

#include <utility>

namespace leasehold::kv {
namespace {

constexpr std::uint8_t kCommandFormat = 1;
constexpr std::uint8_t kReplyFormat = 1;

enum class CommandType : std::uint8_t { set = 1, del = 2, incr_by = 3 };
enum class ReplyType : std::uint8_t { ok = 1, nil = 2, integer = 3, value = 4, error = 5 };

constexpr std::uint8_t kConditionMask = 3;
constexpr std::uint8_t kGetOldFlag = 4;

void put_u8(std::string& out, std::uint8_t value) {
  out.push_back(static_cast<char>(value));
}

void put_u32(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8)
    put_u8(out, static_cast<std::uint8_t>(value >> shift));
}

void put_u64(std::string& out, std::uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8)
    put_u8(out, static_cast<std::uint8_t>(value >> shift));
}

void put_sized(std::string& out, std::string_view bytes) {
  put_u32(out, static_cast<std::uint32_t>(bytes.size()));
  out.append(bytes);
}

/// Takes numbers and strings off the front. A take past the end gives nothing and clears ok().
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  std::string_view rest() const { return rest_; }
  bool at_end() const { return ok_ && rest_.empty(); }

  std::string_view take(std::size_t count) {
    if (count > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::string_view take_rest() { return take(rest_.size()); }
  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  std::string_view sized() { return take(u32()); }

 private:
  std::uint64_t number(std::size_t width) {
    std::uint64_t value = 0;
    for (const char c : take(width)) value = (value << 8U) | static_cast<unsigned char>(c);
    return value;
  }

  std::string_view rest_;
  bool ok_ = true;
};

Error limit_error(const char* what, std::size_t size, std::size_t limit) {
  return {ErrorCode::invalid_argument, std::string(what) + " of " + std::to_string(size) +
                                           " is above the limit of " + std::to_string(limit)};
}

Error malformed(const char* what) {
  return {ErrorCode::malformed, std::string("malformed ") + what};
}

Error unsupported(const char* what, unsigned found, unsigned known) {
  return {ErrorCode::unsupported_format, std::string(what) + " format " + std::to_string(found) +
                                             ", this build knows " + std::to_string(known) +
                                             ": use a newer build"};
}

Result<void> check_key(std::string_view key) {
  if (key.size() <= kKeyBytesMax) return {};
  return limit_error("a key's length in bytes", key.size(), kKeyBytesMax);
}

// The rules that hold for a command whoever made it: checked on both sides of the encoding.

Result<void> check(const Set& set) {
  if (set.value.size() > kValueBytesMax) {
    return limit_error("a value's length in bytes", set.value.size(), kValueBytesMax);
  }
  return check_key(set.key);
}

Result<void> check(const Del& del) {
  if (del.keys.empty()) return Error{ErrorCode::invalid_argument, "no key to delete was given"};
  if (del.keys.size() > kCommandKeysMax) {
    return limit_error("the number of keys", del.keys.size(), kCommandKeysMax);
  }
  for (const std::string_view key : del.keys) {
    if (auto checked = check_key(key); !checked) return checked;
  }
  return {};
}

Result<void> check(const IncrBy& incr) {
  return check_key(incr.key);
}

std::string head(CommandType type, std::size_t body_bytes) {
  std::string out;
  out.reserve(2 + body_bytes);
  put_u8(out, kCommandFormat);
  put_u8(out, static_cast<std::uint8_t>(type));
  return out;
}

std::string encode(const Set& set) {
  std::string out = head(CommandType::set, 5 + set.key.size() + set.value.size());
  const unsigned flags = static_cast<unsigned>(set.condition) | (set.get_old ? kGetOldFlag : 0U);
  put_u8(out, static_cast<std::uint8_t>(flags));
  put_sized(out, set.key);
  out.append(set.value);
  return out;
}

std::string encode(const Del& del) {
  std::size_t body = 4;
  for (const std::string_view key : del.keys) body += 4 + key.size();
  std::string out = head(CommandType::del, body);
  put_u32(out, static_cast<std::uint32_t>(del.keys.size()));
  for (const std::string_view key : del.keys) put_sized(out, key);
  return out;
}

std::string encode(const IncrBy& incr) {
  std::string out = head(CommandType::incr_by, 8 + incr.key.size());
  put_u64(out, static_cast<std::uint64_t>(incr.delta));
  out.append(incr.key);
  return out;
}

Result<Command> decode_set(Cursor in) {
  Set set;
  const std::uint8_t flags = in.u8();
  if ((flags & ~(kConditionMask | kGetOldFlag)) != 0) return malformed("set: unknown flags");
  if ((flags & kConditionMask) > static_cast<std::uint8_t>(SetCondition::xx)) {
    return malformed("set: unknown condition");
  }
  set.condition = static_cast<SetCondition>(flags & kConditionMask);
  set.get_old = (flags & kGetOldFlag) != 0;
  set.key = in.sized();
  set.value = in.take_rest();
  if (!in.ok()) return malformed("set: it ends too early");
  if (auto checked = check(set); !checked) return checked.error();
  return Command(set);
}

Result<Command> decode_del(Cursor in) {
  Del del;
  const std::uint32_t count = in.u32();
  if (count > kCommandKeysMax) return limit_error("the number of keys", count, kCommandKeysMax);
  // Each key takes four bytes at least, so a short command cannot ask for much memory.
  if (in.rest().size() / 4 < count) return malformed("del: it ends too early");
  del.keys.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) del.keys.push_back(in.sized());
  if (!in.at_end()) return malformed("del: its length does not fit its keys");
  if (auto checked = check(del); !checked) return checked.error();
  return Command(std::move(del));
}

Result<Command> decode_incr_by(Cursor in) {
  IncrBy incr;
  incr.delta = static_cast<std::int64_t>(in.u64());
  incr.key = in.take_rest();
  if (!in.ok()) return malformed("incr_by: it ends too early");
  if (auto checked = check(incr); !checked) return checked.error();
  return Command(incr);
}

std::string reply_head(ReplyType type) {
  std::string out;
  put_u8(out, kReplyFormat);
  put_u8(out, static_cast<std::uint8_t>(type));
  return out;
}

std::string encode(const Ok&) {
  return reply_head(ReplyType::ok);
}
std::string encode(const Nil&) {
  return reply_head(ReplyType::nil);
}

std::string encode(const Integer& integer) {
  std::string out = reply_head(ReplyType::integer);
  put_u64(out, static_cast<std::uint64_t>(integer.value));
  return out;
}

std::string encode(const ValueReply& reply) {
  std::string out = reply_head(ReplyType::value);
  out.append(reply.value.view());
  return out;
}

std::string encode(const ErrorReply& error) {
  std::string out = reply_head(ReplyType::error);
  put_u8(out, static_cast<std::uint8_t>(error.kind));
  out.append(error.text);
  return out;
}

template <class Empty>
Result<Reply> decode_empty_reply(Cursor in) {
  if (!in.at_end()) return malformed("reply: wrong length");
  return Reply(Empty{});
}

Result<Reply> decode_integer_reply(Cursor in) {
  const std::uint64_t value = in.u64();
  if (!in.at_end()) return malformed("reply: wrong length");
  return Reply(Integer{static_cast<std::int64_t>(value)});
}

Result<Reply> decode_error_reply(Cursor in) {
  const std::uint8_t kind = in.u8();
  if (!in.ok() || kind < static_cast<std::uint8_t>(ErrorKind::malformed) ||
      kind > static_cast<std::uint8_t>(ErrorKind::store_failed)) {
    return malformed("reply: unknown kind of error");
  }
  return Reply(ErrorReply{static_cast<ErrorKind>(kind), std::string(in.take_rest())});
}

}  // namespace

Result<Bytes> encode_command(const Command& command) {
  const auto checked = std::visit([](const auto& c) { return check(c); }, command);
  if (!checked) return checked.error();
  std::string out = std::visit([](const auto& c) { return encode(c); }, command);
  if (out.size() > kCommandBytesMax) {
    return limit_error("a command's length in bytes", out.size(), kCommandBytesMax);
  }
  return Bytes(std::move(out));
}

Result<Command> decode_command(std::string_view bytes) {
  if (bytes.size() > kCommandBytesMax) {
    return limit_error("a command's length in bytes", bytes.size(), kCommandBytesMax);
  }
  Cursor in(bytes);
  const std::uint8_t format = in.u8();
  if (!in.ok()) return malformed("command: it is empty");
  if (format != kCommandFormat) return unsupported("command", format, kCommandFormat);
  const std::uint8_t type = in.u8();
  if (!in.ok()) return malformed("command: it has no type");
  switch (static_cast<CommandType>(type)) {
    case CommandType::set: return decode_set(in);
    case CommandType::del: return decode_del(in);
    case CommandType::incr_by: return decode_incr_by(in);
  }
  return malformed("command: unknown type");
}

Bytes encode_reply(const Reply& reply) {
  return Bytes(std::visit([](const auto& r) { return encode(r); }, reply));
}

Result<Reply> decode_reply(const Bytes& bytes) {
  Cursor in(bytes.view());
  const std::uint8_t format = in.u8();
  if (!in.ok()) return malformed("reply: it is empty");
  if (format != kReplyFormat) return unsupported("reply", format, kReplyFormat);
  const std::uint8_t type = in.u8();
  if (!in.ok()) return malformed("reply: it has no type");
  switch (static_cast<ReplyType>(type)) {
    case ReplyType::ok: return decode_empty_reply<Ok>(in);
    case ReplyType::nil: return decode_empty_reply<Nil>(in);
    case ReplyType::integer: return decode_integer_reply(in);
    case ReplyType::value: return Reply(ValueReply{bytes.slice(2)});
    case ReplyType::error: return decode_error_reply(in);
  }
  return malformed("reply: unknown type");
}

}  // namespace leasehold::kv
