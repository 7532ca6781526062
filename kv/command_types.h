// The number of each command's type. Pinned: they are in logs. Not for other rooms.
#pragma once

#include <leasehold/kv/command.h>

#include <cstdint>

namespace leasehold::kv {

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
  return 16;
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
constexpr std::uint8_t type_of(Tag<ExpireKey>) {
  return 13;
}
constexpr std::uint8_t type_of(Tag<DelEqual>) {
  return 14;
}
constexpr std::uint8_t type_of(Tag<SetSequential>) {
  return 15;
}
constexpr std::uint8_t type_of(Tag<WithNamedLease>) {
  return 17;
}
constexpr std::uint8_t type_of(Tag<RenewNamed>) {
  return 18;
}
constexpr std::uint8_t type_of(Tag<IncrByFloat>) {
  return 19;
}
constexpr std::uint8_t type_of(Tag<Copy>) {
  return 20;
}
constexpr std::uint8_t type_of(Tag<SetBit>) {
  return 21;
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
constexpr std::uint8_t type_of(Tag<KeyLease>) {
  return 40;
}
constexpr std::uint8_t type_of(Tag<GetBit>) {
  return 41;
}
constexpr std::uint8_t type_of(Tag<BitCount>) {
  return 42;
}
constexpr std::uint8_t type_of(Tag<Lcs>) {
  return 43;
}
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
constexpr std::uint8_t type_of(Tag<SetUser>) {
  return 71;
}
constexpr std::uint8_t type_of(Tag<DelUsers>) {
  return 72;
}
constexpr std::uint8_t type_of(Tag<ActAs>) {
  return 73;
}
constexpr std::uint8_t type_of(Tag<CompareState>) {
  return 74;
}
constexpr std::uint8_t type_of(Tag<ReportState>) {
  return 75;
}
constexpr std::uint8_t type_of(Tag<LoadAtMost>) {
  return 76;
}
constexpr std::uint8_t type_of(Tag<BeginMove>) {
  return 77;
}
constexpr std::uint8_t type_of(Tag<CancelMove>) {
  return 78;
}
constexpr std::uint8_t type_of(Tag<FreezeMove>) {
  return 79;
}
constexpr std::uint8_t type_of(Tag<ExpectSlots>) {
  return 80;
}
constexpr std::uint8_t type_of(Tag<ImportKeys>) {
  return 81;
}
constexpr std::uint8_t type_of(Tag<TakeSlots>) {
  return 82;
}
constexpr std::uint8_t type_of(Tag<LeaveSlots>) {
  return 83;
}
constexpr std::uint8_t type_of(Tag<DropKeys>) {
  return 84;
}
constexpr std::uint8_t type_of(Tag<ForgetSlots>) {
  return 85;
}
constexpr std::uint8_t type_of(Tag<RetryMove>) {
  return 86;
}

}  // namespace leasehold::kv
