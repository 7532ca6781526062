// The contents of the log, of answers and of the store: envelopes, commands, replies, values,
// leases, sessions. The first byte chooses. Each decoder accepts exactly what its encoder writes.
#include <leasehold/base/coding.h>
#include <leasehold/kv/command.h>
#include <leasehold/kv/lease_record.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/replica/command_envelope.h>
#include <leasehold/replica/session_table.h>
#include <leasehold/tests/fuzz/fuzz.h>
#include <leasehold/tests/fuzz/input.h>

#include <string>

namespace leasehold::fuzz {
namespace {

void take_command(std::string_view bytes) {
  const auto command = kv::decode_command(bytes);
  if (!accepted(command)) return;
  const auto again = kv::encode_command(command.value());
  LEASEHOLD_ASSERT(again.ok() && again.value().view() == bytes);
}

void take_reply(std::string_view bytes) {
  const auto reply = kv::decode_reply(Bytes(bytes));
  if (accepted(reply)) LEASEHOLD_ASSERT(kv::encode_reply(reply.value()).view() == bytes);
}

void take_value(std::string_view bytes) {
  const auto value = kv::decode_value(bytes);
  if (!accepted(value)) return;
  const kv::Value& had = value.value();
  const auto again = kv::decode_value(kv::encode_value_head(had) + std::string(had.bytes.view()));
  LEASEHOLD_ASSERT(again.ok() && again.value().bytes.view() == had.bytes.view() &&
                   again.value().lease == had.lease &&
                   again.value().mod_revision == had.mod_revision);
}

void take_lease(std::string_view bytes) {
  const auto lease = kv::decode_lease(grant::LeaseId(1), bytes);
  if (accepted(lease)) LEASEHOLD_ASSERT(kv::encode_lease(lease.value()) == bytes);
}

void take_leases(std::string_view bytes) {
  BigReader in(bytes);
  const auto table = kv::take_leases(in);
  if (!accepted(table)) return;
  std::string again;
  kv::put_leases(again, table.value());
  BigReader out(again);
  const auto back = kv::take_leases(out);
  LEASEHOLD_ASSERT(back.ok() && back.value() == table.value());
}

void take_sessions(std::string_view bytes) {
  const auto table = replica::SessionTable::decode_all(bytes);
  if (!accepted(table)) return;
  const auto back = replica::SessionTable::decode_all(table.value().encode_all().view());
  LEASEHOLD_ASSERT(back.ok() && back.value() == table.value());
}

void take_session(std::string_view bytes) {
  const replica::SessionId id(3);
  replica::SessionTable table;
  table.restore_newest(id);
  if (!accepted(table.restore(id, bytes))) return;
  LEASEHOLD_ASSERT(table.encode(id)->view() == bytes);
}

void take_envelope(std::string_view bytes) {
  const auto envelope = replica::decode_envelope(Bytes(bytes));
  if (!accepted(envelope)) return;
  LEASEHOLD_ASSERT(replica::encode_envelope(envelope.value()).view() == bytes);
  // The command may be anything here: it is the state machine's to refuse.
  take_command(envelope.value().command.view());
}

}  // namespace

void take(std::string_view input) {
  Input in(input);
  switch (in.byte() % 8) {
    case 0: return take_command(in.rest());
    case 1: return take_reply(in.rest());
    case 2: return take_value(in.rest());
    case 3: return take_lease(in.rest());
    case 4: return take_leases(in.rest());
    case 5: return take_sessions(in.rest());
    case 6: return take_session(in.rest());
    default: return take_envelope(in.rest());
  }
}

}  // namespace leasehold::fuzz
