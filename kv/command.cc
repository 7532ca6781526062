// A command: {format u8 = 1}{type u8} and then
//    1 set         {flags u8: bits 0-1 condition, bit 2 get_old, bit 3 lease, bit 4 token,
//                  bit 5 keep_lease, bit 6 ttl, bit 7 end}, with bit 3 {lease u64}, with bit 4
//                  {token u64}, with bit 6 {ttl i64}, with bit 7 {end in ms i64},
//                  {key}{value: the rest}
//    2 del         {keys}
//    3 incr_by     {delta i64}{key: the rest}
//    4 append      {key}{bytes: the rest}
//    5 set_range   {offset u32}{key}{bytes: the rest}
//    6 get_del     {key: the rest}
//    7 mset        {flags u8: bits 0-1 condition, bit 2 ttl, bit 3 end}, with bit 2 {ttl i64}, with
//                  bit 3 {end in ms i64}, {count u32} and
//                  count times {key}{value}
//    8 rename      {flags u8: bit 0 if_free}{from}{to: the rest}
//    9              was grant_lease without its terms; no build writes or reads it
//   10 renew_leases {count u32} and count times {id u64}
//   11 revoke_lease {id u64}
//   12 attach_key   {lease u64}{key: the rest}
//   13 expire_key   {flags u8: bits 0-2 condition, bits 3-4 change, bit 5 get, bit 6 value, bit 7
//   end}{ttl i64},
//                   with a condition or change that looks at the time {stamp u64}{left i64},
//                  with bit 7 {end in ms i64}, with
//                   bit 6 {value}, {key: the rest}
//   14 del_equal    {value}{keys}
//   15 set_sequential {lease u64}{prefix}{value: the rest}
//   16 grant_lease  {id u64}{ttl i64}{asked at in ms i64}{flag u8: soft}{grace in ms u32}
//                   {delay in ms u32}{name}{holder: the rest}
//   17 with_named_lease {name}{a command of type 1, 11, 12 or 15 that names no lease: the rest}
//   18 renew_named  {count u32} and count times {id u64}{name}; id 0: by name, else {name} is empty
//   19 incr_by_float {length u32}{the number as text}{key: the rest}
//   20 copy        {flags u8: bit 0 replace, bit 1 seen}, with bit 1 {stamp u64}{left i64},
//                  {from}{to: the rest}
//   21 set_bit     {at u32}{flag u8: on}{key: the rest}
//   32 get         {key: the rest}
//   33 exists      {keys}
//   34 mget        {keys}
//   35 strlen      {key: the rest}
//   36 get_range   {start i64}{end i64}{key: the rest}
//   37 size        nothing
//   38 lease_info  {id u64}{name: the rest}
//   39 lease_list  {after u64}{count u32}
//   40 key_lease   {flags u8: bit 0 value}, with bit 0 {value}, {key: the rest}
//   41 get_bit     {at u32}{key: the rest}
//   42 bit_count   {start i64}{end i64}{flag u8: bits}{key: the rest}
//   43 lcs         {flags u8: bits 0-1 what is wanted, bit 2 lengths}{least u64}{a}{b: the rest}
//   64 transaction {count u32} and count times {key}{mod revision u64},
//                  {count u32} and count times {length u32}{a command of a type below 64}
//   65 open_session   nothing
//   66 close_session  {session u64}
//   67 touch_session  {session u64}
//   68 expire_session {session u64}{activity u64}
//   69 once           {session u64}{sequence u64}{answered below u64}{a command of a type below 65:
//                     the rest}
//   70 expire_leases  {term u64}{count u32} and count times {id u64}{stamp u64}
//   71 set_user       {name}{expected version u64}{rules: the rest}
//   72 del_users      {count u32} and count times {name}
//   73 act_as         {flag u8: others}{user}{a command of a type below 68, or 69: the rest}
//   74 compare_state  nothing
//   75 report_state   {node u64}{index u64}{version u64}{kept: low u64, high u64}{stored: the same}
//   76 load_at_most   {bytes u64}{a command of a type below 68, or 69 or 73: the rest}
//   77 begin_move     {group u32}{groups u32}{to u32}{count u32} and count times {slot u32}
//   78 cancel_move    {move u64}
//   79 freeze_move    {move u64}
//   80 expect_slots   {group u32}{groups u32}{from u32}{move u64}{count u32} and count times
//                     {slot u32}{epoch u64}
//   81 import_keys    {from u32}{move u64}{count u32} and count times {flags u8: bit 0 it exists,
//                     bit 1 ttl, bit 2 token}{key}, with bit 0 {create revision u64}
//                     {mod revision u64}{version u64}{value}, with bit 1 {ttl i64}, with bit 2
//                     {token u64}
//   82 take_slots     {from u32}{move u64}{revision u64}
//   83 leave_slots    {move u64}
//   84 drop_keys      {other u32}{move u64}{keys}
//   85 forget_slots   {other u32}{move u64}{arriving u8}
// where {key}, {value}, {from}, {prefix}, {name} are {length u32}{bytes}, and {keys} is {count u32}
// and count times {key}. Numbers are big-endian, signed ones two's complement. Every byte is
// accounted for: a command has exactly one encoding. command_fields.h says the same to the
// compiler.
#include <leasehold/base/coding.h>
#include <leasehold/kv/command.h>
#include <leasehold/kv/command_fields.h>
#include <leasehold/kv/command_reader.h>
#include <leasehold/kv/command_types.h>
#include <leasehold/kv/command_writer.h>
#include <leasehold/kv/format_errors.h>
#include <leasehold/kv/named_lease.h>

#include <utility>

namespace leasehold::kv {
namespace {

template <class C>
Result<std::string> encode(const C& command) {
  Writer writer(type_of(Tag<C>()));
  fields(writer, command, Tag<C>());
  return writer.finish();
}

Result<std::string> encode(const WithNamedLease& named) {
  if (auto checked = check_named(named); !checked) return checked.error();
  const auto what = std::visit([](const auto& command) { return encode(command); }, named.what);
  if (!what) return what.error();
  Writer writer(type_of(Tag<WithNamedLease>()));
  writer.key(named.name);
  writer.operation(what.value());
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
Result<Whole> decode(BigReader in) {
  C command;
  Reader reader(in);
  fields(reader, command, Tag<C>());
  if (auto finished = reader.finish(); !finished) return finished.error();
  return Whole(std::move(command));
}

/// Takes format and type off the front.
Result<std::uint8_t> take_type(BigReader& in) {
  const std::uint8_t format = in.u8();
  if (!in.ok()) return malformed("command: it is empty");
  if (format != kCommandFormat) return unsupported("command", format, kCommandFormat);
  const std::uint8_t type = in.u8();
  if (!in.ok()) return malformed("command: it has no type");
  return type;
}

template <class C>
Result<Operation> decode_named(std::string_view name, BigReader in) {
  auto what = decode<C, C>(in);
  if (!what) return what.error();
  WithNamedLease named{name, std::move(what).value()};
  if (auto checked = check_named(named); !checked) return checked.error();
  return Operation(std::move(named));
}

Result<Operation> decode_named(BigReader in) {
  const std::string_view name = in.sized();
  const auto type = take_type(in);
  if (!type) return type.error();
  switch (type.value()) {
    case type_of(Tag<Set>()): return decode_named<Set>(name, in);
    case type_of(Tag<SetSequential>()): return decode_named<SetSequential>(name, in);
    case type_of(Tag<RevokeLease>()): return decode_named<RevokeLease>(name, in);
    case type_of(Tag<AttachKey>()): return decode_named<AttachKey>(name, in);
    default: return malformed("command: one of this type has no lease that could be named");
  }
}

Result<Operation> decode_operation(std::uint8_t type, BigReader in) {
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
    case type_of(Tag<ExpireKey>()): return decode<ExpireKey>(in);
    case type_of(Tag<DelEqual>()): return decode<DelEqual>(in);
    case type_of(Tag<SetSequential>()): return decode<SetSequential>(in);
    case type_of(Tag<WithNamedLease>()): return decode_named(in);
    case type_of(Tag<RenewNamed>()): return decode<RenewNamed>(in);
    case type_of(Tag<IncrByFloat>()): return decode<IncrByFloat>(in);
    case type_of(Tag<Copy>()): return decode<Copy>(in);
    case type_of(Tag<SetBit>()): return decode<SetBit>(in);
    case type_of(Tag<GetBit>()): return decode<GetBit>(in);
    case type_of(Tag<BitCount>()): return decode<BitCount>(in);
    case type_of(Tag<Lcs>()): return decode<Lcs>(in);
    case type_of(Tag<Get>()): return decode<Get>(in);
    case type_of(Tag<Exists>()): return decode<Exists>(in);
    case type_of(Tag<MGet>()): return decode<MGet>(in);
    case type_of(Tag<StrLen>()): return decode<StrLen>(in);
    case type_of(Tag<GetRange>()): return decode<GetRange>(in);
    case type_of(Tag<Size>()): return decode<Size>(in);
    case type_of(Tag<LeaseInfo>()): return decode<LeaseInfo>(in);
    case type_of(Tag<LeaseList>()): return decode<LeaseList>(in);
    case type_of(Tag<KeyLease>()): return decode<KeyLease>(in);
    default: return malformed("command: unknown type");
  }
}

Result<Command> decode_transaction(BigReader in) {
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
    BigReader part(in.sized());
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
  if (auto checked = check_length(bytes); !checked) return checked.error();
  BigReader in(bytes);
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
    case type_of(Tag<SetUser>()): return decode<SetUser, Command>(in);
    case type_of(Tag<DelUsers>()): return decode<DelUsers, Command>(in);
    case type_of(Tag<ActAs>()): return decode<ActAs, Command>(in);
    case type_of(Tag<LoadAtMost>()): return decode<LoadAtMost, Command>(in);
    case type_of(Tag<CompareState>()): return decode<CompareState, Command>(in);
    case type_of(Tag<ReportState>()): return decode<ReportState, Command>(in);
    case type_of(Tag<BeginMove>()): return decode<BeginMove, Command>(in);
    case type_of(Tag<CancelMove>()): return decode<CancelMove, Command>(in);
    case type_of(Tag<FreezeMove>()): return decode<FreezeMove, Command>(in);
    case type_of(Tag<ExpectSlots>()): return decode<ExpectSlots, Command>(in);
    case type_of(Tag<ImportKeys>()): return decode<ImportKeys, Command>(in);
    case type_of(Tag<TakeSlots>()): return decode<TakeSlots, Command>(in);
    case type_of(Tag<LeaveSlots>()): return decode<LeaveSlots, Command>(in);
    case type_of(Tag<DropKeys>()): return decode<DropKeys, Command>(in);
    case type_of(Tag<ForgetSlots>()): return decode<ForgetSlots, Command>(in);
    case type_of(Tag<RetryMove>()): return decode<RetryMove, Command>(in);
    default: break;
  }
  auto operation = decode_operation(type.value(), in);
  if (!operation) return operation.error();
  return std::visit([](auto& o) { return Command(std::move(o)); }, operation.value());
}

}  // namespace leasehold::kv
