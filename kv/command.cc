// A command: {format u8 = 1}{type u8} and then
//    1 set         {flags u8: bits 0-1 condition, bit 2 get_old, bit 3 lease, bit 4 token,
//                  bit 5 keep_lease}, with bit 3 {lease u64}, with bit 4 {token u64},
//                  {key}{value: the rest}
//    2 del         {keys}
//    3 incr_by     {delta i64}{key: the rest}
//    4 append      {key}{bytes: the rest}
//    5 set_range   {offset u32}{key}{bytes: the rest}
//    6 get_del     {key: the rest}
//    7 mset        {flags u8: bit 0 if_none_exists}{count u32} and count times {key}{value}
//    8 rename      {flags u8: bit 0 if_free}{from}{to: the rest}
//    9 grant_lease  {id u64}{ttl i64}{name}{holder: the rest}
//   10 renew_leases {count u32} and count times {id u64}
//   11 revoke_lease {id u64}
//   12 attach_key   {lease u64}{key: the rest}
//   32 get         {key: the rest}
//   33 exists      {keys}
//   34 mget        {keys}
//   35 strlen      {key: the rest}
//   36 get_range   {start i64}{end i64}{key: the rest}
//   37 size        nothing
//   38 lease_info  {id u64}{name: the rest}
//   39 lease_list  {after u64}{count u32}
//   64 transaction {count u32} and count times {key}{mod revision u64},
//                  {count u32} and count times {length u32}{a command of a type below 64}
//   65 open_session   nothing
//   66 close_session  {session u64}
//   67 touch_session  {session u64}
//   68 expire_session {session u64}{activity u64}
//   69 once           {session u64}{sequence u64}{answered below u64}{a command of a type below 65:
//                     the rest}
//   70 expire_leases  {term u64}{count u32} and count times {id u64}{stamp u64}
// where {key}, {value}, {from} are {length u32}{bytes}, and {keys} is {count u32} and count times
// {key}. Numbers are big-endian, signed ones two's complement. Every byte is accounted for: a
// command has exactly one encoding. fields() below says the same to the compiler.
#include <leasehold/kv/coding.h>
#include <leasehold/kv/command.h>

#include <optional>
#include <utility>

namespace leasehold::kv {
namespace {

constexpr std::uint8_t kCommandFormat = 1;

template <class C>
struct Tag {};

constexpr std::uint8_t type_of(Tag<Set>) {
  return 1;
}
constexpr std::uint8_t type_of(Tag<Del>) {
  return 2;
}
constexpr std::uint8_t type_of(Tag<IncrBy>) {
  return 3;
}
constexpr std::uint8_t type_of(Tag<Append>) {
  return 4;
}
constexpr std::uint8_t type_of(Tag<SetRange>) {
  return 5;
}
constexpr std::uint8_t type_of(Tag<GetDel>) {
  return 6;
}
constexpr std::uint8_t type_of(Tag<MSet>) {
  return 7;
}
constexpr std::uint8_t type_of(Tag<Rename>) {
  return 8;
}
constexpr std::uint8_t type_of(Tag<GrantLease>) {
  return 9;
}
constexpr std::uint8_t type_of(Tag<RenewLeases>) {
  return 10;
}
constexpr std::uint8_t type_of(Tag<RevokeLease>) {
  return 11;
}
constexpr std::uint8_t type_of(Tag<AttachKey>) {
  return 12;
}
constexpr std::uint8_t type_of(Tag<Get>) {
  return 32;
}
constexpr std::uint8_t type_of(Tag<Exists>) {
  return 33;
}
constexpr std::uint8_t type_of(Tag<MGet>) {
  return 34;
}
constexpr std::uint8_t type_of(Tag<StrLen>) {
  return 35;
}
constexpr std::uint8_t type_of(Tag<GetRange>) {
  return 36;
}
constexpr std::uint8_t type_of(Tag<Size>) {
  return 37;
}
constexpr std::uint8_t type_of(Tag<LeaseInfo>) {
  return 38;
}
constexpr std::uint8_t type_of(Tag<LeaseList>) {
  return 39;
}
constexpr std::uint8_t kTransactionType = 64;
constexpr std::uint8_t type_of(Tag<OpenSession>) {
  return 65;
}
constexpr std::uint8_t type_of(Tag<CloseSession>) {
  return 66;
}
constexpr std::uint8_t type_of(Tag<TouchSession>) {
  return 67;
}
constexpr std::uint8_t type_of(Tag<ExpireSession>) {
  return 68;
}
constexpr std::uint8_t type_of(Tag<Once>) {
  return 69;
}
constexpr std::uint8_t type_of(Tag<ExpireLeases>) {
  return 70;
}

constexpr std::uint8_t kConditionMask = 3;
constexpr std::uint8_t kGetOldFlag = 4;
constexpr std::uint8_t kLeaseFlag = 8;
constexpr std::uint8_t kTokenFlag = 16;
constexpr std::uint8_t kKeepLeaseFlag = 32;
constexpr std::uint8_t kSetFlags = 63;

Error limit_error(const char* what, std::size_t size, std::size_t limit) {
  return {ErrorCode::invalid_argument, std::string(what) + " of " + std::to_string(size) +
                                           " is above the limit of " + std::to_string(limit)};
}

Result<void> check_key(std::string_view key) {
  if (key.size() <= kKeyBytesMax) return {};
  return limit_error("a key's length in bytes", key.size(), kKeyBytesMax);
}

Result<void> check_value(std::string_view value) {
  if (value.size() <= kValueBytesMax) return {};
  return limit_error("a value's length in bytes", value.size(), kValueBytesMax);
}

Result<void> check_count(std::size_t count) {
  if (count == 0) return Error{ErrorCode::invalid_argument, "no key was given"};
  if (count > kCommandKeysMax) return limit_error("the number of keys", count, kCommandKeysMax);
  return {};
}

Result<void> check_leases(std::size_t count) {
  if (count == 0) return Error{ErrorCode::invalid_argument, "no lease was given"};
  if (count <= kCommandLeasesMax) return {};
  return limit_error("the number of leases", count, kCommandLeasesMax);
}

Result<void> check_set(const Set& set) {
  if (!set.keep_lease || set.lease == lease::LeaseId(0)) return {};
  return Error{ErrorCode::invalid_argument, "a key cannot keep its lease and have a new one"};
}

/// What Once carries is judged when it is evaluated, but for this: it is of a format that is known,
/// and no command of sessions.
Result<void> check_carried(std::string_view command) {
  Cursor in(command);
  const std::uint8_t format = in.u8();
  const std::uint8_t type = in.u8();
  if (!in.ok()) return malformed("command: what it carries is none");
  if (format != kCommandFormat) return unsupported("command", format, kCommandFormat);
  if (type > kTransactionType) return malformed("command: it may not carry one of this type");
  return {};
}

/// Writes fields, after checking their limits.
class Writer {
 public:
  std::string out;

  void flag(bool value) { put_u8(out, value ? 1 : 0); }
  void options(const Set& set) {
    note(check_set(set));
    const bool lease = set.lease != lease::LeaseId(0);
    const bool token = set.token != lease::FencingToken(0);
    const unsigned flags = static_cast<unsigned>(set.condition) | (set.get_old ? kGetOldFlag : 0U) |
                           (lease ? kLeaseFlag : 0U) | (token ? kTokenFlag : 0U) |
                           (set.keep_lease ? kKeepLeaseFlag : 0U);
    put_u8(out, static_cast<std::uint8_t>(flags));
    if (lease) put_u64(out, set.lease.value());
    if (token) put_u64(out, set.token.value());
  }
  void number(std::int64_t value) { put_u64(out, static_cast<std::uint64_t>(value)); }
  void number(std::uint32_t value) { put_u32(out, value); }
  void number(std::uint64_t value) { put_u64(out, value); }
  template <class Tag>
  void number(StrongInt<Tag> value) {
    put_u64(out, value.value());
  }
  void number(lease::Duration value) { number(std::int64_t{value.count()}); }
  void number(const SeenLease& seen) {
    number(seen.id);
    number(seen.stamp);
  }
  template <class Lease>
  void leases(const std::vector<Lease>& leases) {
    note(check_leases(leases.size()));
    put_u32(out, static_cast<std::uint32_t>(leases.size()));
    for (const Lease& one : leases) number(one);
  }
  void listed(std::uint32_t count) {
    note(check_leases(count));
    put_u32(out, count);
  }
  void carried(std::string_view command) {
    note(check_carried(command));
    out.append(command);
  }
  void key(std::string_view key) {
    note(check_key(key));
    put_sized(out, key);
  }
  void last_key(std::string_view key) {
    note(check_key(key));
    out.append(key);
  }
  void last_value(std::string_view value) {
    note(check_value(value));
    out.append(value);
  }
  void keys(const std::vector<std::string_view>& keys) {
    note(check_count(keys.size()));
    put_u32(out, static_cast<std::uint32_t>(keys.size()));
    for (const std::string_view one : keys) key(one);
  }
  void pairs(const std::vector<std::pair<std::string_view, std::string_view>>& pairs) {
    note(check_count(pairs.size()));
    put_u32(out, static_cast<std::uint32_t>(pairs.size()));
    for (const auto& [name, value] : pairs) {
      key(name);
      note(check_value(value));
      put_sized(out, value);
    }
  }
  Result<std::string> finish() {
    if (problem_) return *problem_;
    if (out.size() > kCommandBytesMax) {
      return limit_error("a command's length in bytes", out.size(), kCommandBytesMax);
    }
    return std::move(out);
  }

 private:
  void note(const Result<void>& checked) {
    if (!checked && !problem_) problem_ = checked.error();
  }
  std::optional<Error> problem_;
};

/// Reads fields; the first problem stays.
class Reader {
 public:
  explicit Reader(Cursor in) : in_(in) {}

  void flag(bool& value) {
    const std::uint8_t bits = in_.u8();
    if (bits > 1) note(malformed("command: unknown flags"));
    value = bits == 1;
  }
  void options(Set& set) {
    const std::uint8_t flags = in_.u8();
    if ((flags & ~kSetFlags) != 0 ||
        (flags & kConditionMask) > static_cast<std::uint8_t>(SetCondition::xx)) {
      return note(malformed("command: unknown flags"));
    }
    set.condition = static_cast<SetCondition>(flags & kConditionMask);
    set.get_old = (flags & kGetOldFlag) != 0;
    set.keep_lease = (flags & kKeepLeaseFlag) != 0;
    const bool lease = (flags & kLeaseFlag) != 0;
    const bool token = (flags & kTokenFlag) != 0;
    if (lease) number(set.lease);
    if (token) number(set.token);
    // None is said by the flag alone.
    if ((lease && set.lease == lease::LeaseId(0)) || (token && set.token.value() == 0)) {
      note(malformed("command: a lease or a token that is none"));
    }
    note(check_set(set));
  }
  void number(std::int64_t& value) { value = static_cast<std::int64_t>(in_.u64()); }
  void number(std::uint32_t& value) { value = in_.u32(); }
  void number(std::uint64_t& value) { value = in_.u64(); }
  template <class Tag>
  void number(StrongInt<Tag>& value) {
    value = StrongInt<Tag>(in_.u64());
  }
  void number(lease::Duration& value) {
    value = lease::Duration(static_cast<std::int64_t>(in_.u64()));
  }
  void number(SeenLease& seen) {
    number(seen.id);
    number(seen.stamp);
  }
  template <class Lease>
  void leases(std::vector<Lease>& leases) {
    leases.resize(count(sizeof(Lease), check_leases));
    for (Lease& one : leases) number(one);
  }
  void listed(std::uint32_t& count) {
    count = in_.u32();
    note(check_leases(count));
  }
  void carried(std::string_view& command) {
    command = in_.take_rest();
    note(check_carried(command));
  }
  void key(std::string_view& key) {
    key = in_.sized();
    note(check_key(key));
  }
  void last_key(std::string_view& key) {
    key = in_.take_rest();
    note(check_key(key));
  }
  void last_value(std::string_view& value) {
    value = in_.take_rest();
    note(check_value(value));
  }
  void keys(std::vector<std::string_view>& keys) {
    keys.resize(count(4, check_count));
    for (std::string_view& one : keys) key(one);
  }
  void pairs(std::vector<std::pair<std::string_view, std::string_view>>& pairs) {
    pairs.resize(count(8, check_count));
    for (auto& [name, value] : pairs) {
      key(name);
      value = in_.sized();
      note(check_value(value));
    }
  }
  /// What the command's bytes amount to once every field has been read.
  Result<void> finish() const {
    if (!in_.at_end()) return malformed("command: its length does not fit its fields");
    if (problem_) return *problem_;
    return {};
  }

 private:
  /// A count of things that take `width` bytes at least; 0 after a problem, so that a short command
  /// cannot ask for much memory.
  std::size_t count(std::size_t width, Result<void> (*check)(std::size_t)) {
    const std::uint32_t count = in_.u32();
    if (auto checked = check(count); !checked) {
      note(checked.error());
      return 0;
    }
    if (in_.rest().size() / width < count) {
      note(malformed("command: it ends too early"));
      return 0;
    }
    return count;
  }
  void note(const Result<void>& checked) {
    if (!checked && !problem_) problem_ = checked.error();
  }

  Cursor in_;
  std::optional<Error> problem_;
};

// The fields of each command, for the writer (C is const) and the reader alike.

template <class Io, class C>
void fields(Io& io, C& c, Tag<Set>) {
  io.options(c);
  io.key(c.key);
  io.last_value(c.value);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<Del>) {
  io.keys(c.keys);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<IncrBy>) {
  io.number(c.delta);
  io.last_key(c.key);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<Append>) {
  io.key(c.key);
  io.last_value(c.bytes);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<SetRange>) {
  io.number(c.offset);
  io.key(c.key);
  io.last_value(c.bytes);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<GetDel>) {
  io.last_key(c.key);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<MSet>) {
  io.flag(c.if_none_exists);
  io.pairs(c.pairs);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<Rename>) {
  io.flag(c.if_free);
  io.key(c.from);
  io.last_key(c.to);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<GrantLease>) {
  io.number(c.id);
  io.number(c.ttl);
  io.key(c.name);
  io.last_key(c.holder);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<RenewLeases>) {
  io.leases(c.ids);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<RevokeLease>) {
  io.number(c.id);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<AttachKey>) {
  io.number(c.lease);
  io.last_key(c.key);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<Get>) {
  io.last_key(c.key);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<Exists>) {
  io.keys(c.keys);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<MGet>) {
  io.keys(c.keys);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<StrLen>) {
  io.last_key(c.key);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<GetRange>) {
  io.number(c.start);
  io.number(c.end);
  io.last_key(c.key);
}
template <class Io, class C>
void fields(Io&, C&, Tag<Size>) {}
template <class Io, class C>
void fields(Io& io, C& c, Tag<LeaseInfo>) {
  io.number(c.id);
  io.last_key(c.name);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<LeaseList>) {
  io.number(c.after);
  io.listed(c.count);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<ExpireLeases>) {
  io.number(c.term);
  io.leases(c.leases);
}
template <class Io, class C>
void fields(Io&, C&, Tag<OpenSession>) {}
template <class Io, class C>
void fields(Io& io, C& c, Tag<CloseSession>) {
  io.number(c.session);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<TouchSession>) {
  io.number(c.session);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<ExpireSession>) {
  io.number(c.session);
  io.number(c.activity);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<Once>) {
  io.number(c.session);
  io.number(c.sequence);
  io.number(c.answered_below);
  io.carried(c.command);
}

template <class C>
Result<std::string> encode(const C& command) {
  Writer writer;
  put_u8(writer.out, kCommandFormat);
  put_u8(writer.out, type_of(Tag<C>()));
  fields(writer, command, Tag<C>());
  return writer.finish();
}

Result<std::string> encode(const Transaction& transaction) {
  TransactionBuilder builder;
  for (const Watched& watched : transaction.watched) {
    if (auto added = builder.watch(watched); !added) return added.error();
  }
  for (const Operation& operation : transaction.operations) {
    if (auto added = builder.add(operation); !added) return added.error();
  }
  return std::string(builder.finish().view());
}

template <class C, class Whole = Operation>
Result<Whole> decode(Cursor in) {
  C command;
  Reader reader(in);
  fields(reader, command, Tag<C>());
  if (auto finished = reader.finish(); !finished) return finished.error();
  return Whole(std::move(command));
}

/// Takes format and type off the front.
Result<std::uint8_t> take_type(Cursor& in) {
  const std::uint8_t format = in.u8();
  if (!in.ok()) return malformed("command: it is empty");
  if (format != kCommandFormat) return unsupported("command", format, kCommandFormat);
  const std::uint8_t type = in.u8();
  if (!in.ok()) return malformed("command: it has no type");
  return type;
}

Result<Operation> decode_operation(std::uint8_t type, Cursor in) {
  switch (type) {
    case type_of(Tag<Set>()): return decode<Set>(in);
    case type_of(Tag<Del>()): return decode<Del>(in);
    case type_of(Tag<IncrBy>()): return decode<IncrBy>(in);
    case type_of(Tag<Append>()): return decode<Append>(in);
    case type_of(Tag<SetRange>()): return decode<SetRange>(in);
    case type_of(Tag<GetDel>()): return decode<GetDel>(in);
    case type_of(Tag<MSet>()): return decode<MSet>(in);
    case type_of(Tag<Rename>()): return decode<Rename>(in);
    case type_of(Tag<GrantLease>()): return decode<GrantLease>(in);
    case type_of(Tag<RenewLeases>()): return decode<RenewLeases>(in);
    case type_of(Tag<RevokeLease>()): return decode<RevokeLease>(in);
    case type_of(Tag<AttachKey>()): return decode<AttachKey>(in);
    case type_of(Tag<Get>()): return decode<Get>(in);
    case type_of(Tag<Exists>()): return decode<Exists>(in);
    case type_of(Tag<MGet>()): return decode<MGet>(in);
    case type_of(Tag<StrLen>()): return decode<StrLen>(in);
    case type_of(Tag<GetRange>()): return decode<GetRange>(in);
    case type_of(Tag<Size>()): return decode<Size>(in);
    case type_of(Tag<LeaseInfo>()): return decode<LeaseInfo>(in);
    case type_of(Tag<LeaseList>()): return decode<LeaseList>(in);
    default: return malformed("command: unknown type");
  }
}

Result<Command> decode_transaction(Cursor in) {
  Transaction transaction;
  const std::uint32_t watched = in.u32();
  if (in.rest().size() / 12 < watched) return malformed("transaction: it ends too early");
  if (watched > kOperationsMax) {
    return limit_error("the number of watched keys", watched, kOperationsMax);
  }
  transaction.watched.resize(watched);
  for (Watched& one : transaction.watched) {
    one.key = in.sized();
    one.mod_revision = in.u64();
    if (auto checked = check_key(one.key); !checked) return checked.error();
  }
  const std::uint32_t operations = in.u32();
  if (in.rest().size() / 6 < operations) return malformed("transaction: it ends too early");
  if (operations > kOperationsMax) {
    return limit_error("the number of operations", operations, kOperationsMax);
  }
  transaction.operations.reserve(operations);
  for (std::uint32_t i = 0; i < operations; ++i) {
    Cursor part(in.sized());
    if (!in.ok()) break;
    const auto type = take_type(part);
    if (!type) return type.error();
    auto operation = decode_operation(type.value(), part);
    if (!operation) return operation.error();
    transaction.operations.push_back(std::move(operation).value());
  }
  if (!in.at_end()) return malformed("transaction: its length does not fit its parts");
  return Command(std::move(transaction));
}

}  // namespace

Result<Bytes> encode_command(const Command& command) {
  auto encoded = std::visit([](const auto& c) { return encode(c); }, command);
  if (!encoded) return encoded.error();
  return Bytes(std::move(encoded).value());
}

Result<Command> decode_command(std::string_view bytes) {
  if (bytes.size() > kCommandBytesMax) {
    return limit_error("a command's length in bytes", bytes.size(), kCommandBytesMax);
  }
  Cursor in(bytes);
  const auto type = take_type(in);
  if (!type) return type.error();
  switch (type.value()) {
    case kTransactionType: return decode_transaction(in);
    case type_of(Tag<OpenSession>()): return decode<OpenSession, Command>(in);
    case type_of(Tag<CloseSession>()): return decode<CloseSession, Command>(in);
    case type_of(Tag<TouchSession>()): return decode<TouchSession, Command>(in);
    case type_of(Tag<ExpireSession>()): return decode<ExpireSession, Command>(in);
    case type_of(Tag<Once>()): return decode<Once, Command>(in);
    case type_of(Tag<ExpireLeases>()): return decode<ExpireLeases, Command>(in);
    default: break;
  }
  auto operation = decode_operation(type.value(), in);
  if (!operation) return operation.error();
  return std::visit([](auto& o) { return Command(std::move(o)); }, operation.value());
}

Result<void> TransactionBuilder::add(std::string_view piece, std::size_t pieces, std::string& to) {
  if (pieces >= kOperationsMax) {
    return limit_error("the number of parts of a transaction", pieces + 1, kOperationsMax);
  }
  // Format, type and the two counts come before the pieces.
  const std::size_t whole = 10 + watched_bytes_.size() + operation_bytes_.size() + piece.size();
  if (whole > kCommandBytesMax) {
    return limit_error("a transaction's length in bytes", whole, kCommandBytesMax);
  }
  to.append(piece);
  return {};
}

Result<void> TransactionBuilder::add(const Operation& operation) {
  const auto encoded = std::visit([](const auto& o) { return encode(o); }, operation);
  if (!encoded) return encoded.error();
  std::string piece;
  put_sized(piece, encoded.value());
  if (auto added = add(piece, operations_, operation_bytes_); !added) return added;
  ++operations_;
  return {};
}

Result<void> TransactionBuilder::watch(const Watched& watched) {
  if (auto checked = check_key(watched.key); !checked) return checked;
  std::string piece;
  put_sized(piece, watched.key);
  put_u64(piece, watched.mod_revision);
  if (auto added = add(piece, watched_, watched_bytes_); !added) return added;
  ++watched_;
  return {};
}

Bytes TransactionBuilder::finish() const {
  std::string out;
  out.reserve(10 + watched_bytes_.size() + operation_bytes_.size());
  put_u8(out, kCommandFormat);
  put_u8(out, kTransactionType);
  put_u32(out, static_cast<std::uint32_t>(watched_));
  out.append(watched_bytes_);
  put_u32(out, static_cast<std::uint32_t>(operations_));
  out.append(operation_bytes_);
  return Bytes(std::move(out));
}

}  // namespace leasehold::kv
