// A reply: {format u8 = 1}{type u8} and then
//   1 ok, 2 nil   nothing
//   3 integer     {i64}
//   4 value       {the rest}
//   5 error       {kind u8}{text: the rest}
//   6 array       {count u32} and count times {length u32}{a reply}
#include <leasehold/base/coding.h>
#include <leasehold/kv/format_errors.h>
#include <leasehold/kv/reply.h>

#include <utility>

namespace leasehold::kv {
namespace {

constexpr std::uint8_t kReplyFormat = 1;

enum class ReplyType : std::uint8_t {
  ok = 1,
  nil = 2,
  integer = 3,
  value = 4,
  error = 5,
  array = 6
};

std::string reply_head(ReplyType type) {
  std::string out;
  BigWriter to(out);
  to.u8(kReplyFormat);
  to.u8(static_cast<std::uint8_t>(type));
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
  BigWriter(out).u64(static_cast<std::uint64_t>(integer.value));
  return out;
}

std::string encode(const ValueReply& reply) {
  std::string out = reply_head(ReplyType::value);
  out.append(reply.value.view());
  return out;
}

std::string encode(const ErrorReply& error) {
  std::string out = reply_head(ReplyType::error);
  BigWriter(out).u8(static_cast<std::uint8_t>(error.kind));
  out.append(error.text);
  return out;
}

std::string encode(const ArrayReply& array) {
  std::string out = reply_head(ReplyType::array);
  BigWriter to(out);
  to.u32(static_cast<std::uint32_t>(array.items.size()));
  for (const Bytes& item : array.items) to.sized(item.view());
  return out;
}

template <class Empty>
Result<Reply> decode_empty_reply(BigReader in) {
  if (!in.at_end()) return malformed("reply: wrong length");
  return Reply(Empty{});
}

Result<Reply> decode_integer_reply(BigReader in) {
  const std::uint64_t value = in.u64();
  if (!in.at_end()) return malformed("reply: wrong length");
  return Reply(Integer{static_cast<std::int64_t>(value)});
}

Result<Reply> decode_error_reply(BigReader in) {
  const std::uint8_t kind = in.u8();
  if (!in.ok() || kind < static_cast<std::uint8_t>(ErrorKind::malformed) ||
      kind > static_cast<std::uint8_t>(ErrorKind::slot_left)) {
    return malformed("reply: unknown kind of error");
  }
  return Reply(ErrorReply{static_cast<ErrorKind>(kind), std::string(in.take_rest())});
}

Result<Reply> decode_array_reply(BigReader in, const Bytes& bytes) {
  ArrayReply array;
  const std::uint32_t count = in.u32();
  // Each item takes four bytes at least, so a short reply cannot ask for much memory.
  if (!in.ok() || in.rest().size() / 4 < count) return malformed("reply: it ends too early");
  array.items.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string_view item = in.sized();
    if (!in.ok()) break;
    array.items.push_back(
        bytes.slice(static_cast<std::size_t>(item.data() - bytes.data()), item.size()));
  }
  if (!in.at_end()) return malformed("reply: wrong length");
  return Reply(std::move(array));
}

}  // namespace

Bytes encode_reply(const Reply& reply) {
  return Bytes(std::visit([](const auto& r) { return encode(r); }, reply));
}

Result<Reply> decode_reply(const Bytes& bytes) {
  BigReader in(bytes.view());
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
    case ReplyType::array: return decode_array_reply(in, bytes);
  }
  return malformed("reply: unknown type");
}

}  // namespace leasehold::kv
