// The fields of each command, for its writer (C is const) and its reader alike. The bytes are in
// command.cc. Not for other rooms.
#pragma once

#include <leasehold/kv/command.h>
#include <leasehold/kv/command_limits.h>
#include <leasehold/kv/command_types.h>

namespace leasehold::kv {

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
  io.options(c);
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
  io.number(c.asked_at_ms);
  io.flag(c.terms.soft);
  io.number(c.terms.grace);
  io.number(c.terms.delay);
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
void fields(Io& io, C& c, Tag<ExpireKey>) {
  io.options(c);
  io.last_key(c.key);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<DelEqual>) {
  io.value(c.value);
  io.keys(c.keys);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<SetSequential>) {
  io.number(c.lease);
  io.prefix(c.prefix);
  io.last_value(c.value);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<RenewNamed>) {
  io.leases(c.leases);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<IncrByFloat>) {
  io.decimal(c.delta);
  io.last_key(c.key);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<Copy>) {
  io.options(c);
  io.key(c.from);
  io.last_key(c.to);
  io.require(check_copy(c));
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<SetBit>) {
  io.number(c.at);
  io.flag(c.on);
  io.last_key(c.key);
  io.require(check_bit(c.at));
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<GetBit>) {
  io.number(c.at);
  io.last_key(c.key);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<BitCount>) {
  io.number(c.start);
  io.number(c.end);
  io.flag(c.bits);
  io.last_key(c.key);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<Lcs>) {
  io.options(c);
  io.number(c.least);
  io.key(c.a);
  io.last_key(c.b);
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
void fields(Io& io, C& c, Tag<KeyLease>) {
  io.options(c);
  io.last_key(c.key);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<ExpireLeases>) {
  io.number(c.term);
  io.leases(c.leases);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<SetUser>) {
  io.user(c.name);
  io.number(c.expected);
  io.rules(c.rules);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<DelUsers>) {
  io.users(c.names);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<ActAs>) {
  io.flag(c.others);
  io.user(c.user);
  io.acted(c.command);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<LoadAtMost>) {
  io.number(c.bytes);
  io.limited(c.command);
}
template <class Io, class C>
void fields(Io&, C&, Tag<CompareState>) {}
template <class Io, class C>
void fields(Io& io, C& c, Tag<ReportState>) {
  io.number(c.report.node);
  io.number(c.report.index);
  io.number(c.report.version);
  io.number(c.report.kept.low);
  io.number(c.report.kept.high);
  io.number(c.report.stored.low);
  io.number(c.report.stored.high);
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

template <class Io, class C>
void fields(Io& io, C& c, Tag<BeginMove>) {
  io.number(c.group);
  io.number(c.groups);
  io.number(c.to);
  io.slots(c.slots);
  io.require(check_begin(c));
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<CancelMove>) {
  io.number(c.move);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<FreezeMove>) {
  io.number(c.move);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<ExpectSlots>) {
  io.number(c.group);
  io.number(c.groups);
  io.number(c.from);
  io.number(c.move);
  io.slots(c.slots);
  io.require(check_expect(c));
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<ImportKeys>) {
  io.number(c.from);
  io.number(c.move);
  io.moved(c.keys);
  io.require(check_import(c));
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<TakeSlots>) {
  io.number(c.from);
  io.number(c.move);
  io.number(c.revision);
  io.require(check_revision(c.revision));
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<LeaveSlots>) {
  io.number(c.move);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<DropKeys>) {
  io.number(c.other);
  io.number(c.move);
  io.keys(c.keys);
  io.require(check_ascending(c.keys));
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<ForgetSlots>) {
  io.number(c.other);
  io.number(c.move);
  io.flag(c.arriving);
}
template <class Io, class C>
void fields(Io& io, C& c, Tag<RetryMove>) {
  io.number(c.move);
  io.slots(c.slots);
  io.require(check_slots(c.slots));
}

}  // namespace leasehold::kv
