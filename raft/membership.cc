// Format of a membership, versions 1 to 3, little-endian:
//
//   u8  format (3 if there are settings, else 2 if there is a witness, else 1: one encoding for
//   each
//       membership, and one that an earlier build reads as long as it needs nothing newer)
//   u16 number of members, then for each, ascending by id:
//         u64 id   u64 uuid.high   u64 uuid.low   u8 flags   u16 address length   address bytes
//
// flags: bit 0 votes; bit 1 votes in the membership that is being left (joint); bit 2 is no member
// any more once the joint state is left: then bit 1 is set and bit 0 is not; bit 3 (formats 2 and
// 3) is a witness. Other bits are zero. Without bits 0 and 1: a learner.
//
// Format 3 ends with the settings:
//
//   u8  format of the settings, 1
//   u64 lease   u64 heartbeat   u64 clock drift (ppm)   u64 round trip   u64 margin
//   u64 election timeout   (durations in nanoseconds)   u8 flags: bit 0, reads by the lease are on

#include <leasehold/base/coding.h>
#include <leasehold/base/fnv.h>
#include <leasehold/raft/membership.h>
#include <leasehold/raft/settings_form.h>

#include <algorithm>

namespace leasehold::raft {
namespace {

constexpr std::uint8_t kFormatPlain = 1;
constexpr std::uint8_t kFormatWithWitnesses = 2;
constexpr std::uint8_t kFormatWithSettings = 3;
constexpr std::uint8_t kVotes = 1;
constexpr std::uint8_t kVotesInOutgoing = 2;
constexpr std::uint8_t kLeaves = 4;
constexpr std::uint8_t kWitness = 8;
constexpr std::size_t kAddressMax = 512;

bool contains(const std::vector<NodeId>& sorted, NodeId id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

std::uint8_t format_of(const Membership& membership) {
  if (membership.settings) return kFormatWithSettings;
  return membership.witnesses.empty() ? kFormatPlain : kFormatWithWitnesses;
}

Error malformed(const char* what) {
  return Error{ErrorCode::malformed, std::string("membership entry: ") + what};
}

}  // namespace

bool Membership::is_voter(NodeId id) const {
  return contains(voters, id) || contains(outgoing_voters, id);
}

bool Membership::is_voter(NodeId id, const Uuid& uuid) const {
  const Member* member = find(id);
  return member != nullptr && member->uuid == uuid && is_voter(id);
}

bool Membership::is_witness(NodeId id) const {
  return contains(witnesses, id);
}

const Member* Membership::find(NodeId id) const {
  const auto at = std::lower_bound(members.begin(), members.end(), id,
                                   [](const Member& m, NodeId wanted) { return m.id < wanted; });
  return at != members.end() && at->id == id ? &*at : nullptr;
}

// FNV-1a over the entry, and a last step that mixes the bits. Pinned: people compare ids of
// different builds.
MembershipId id_of(const Membership& membership) {
  constexpr std::uint64_t kOdd = 0x100000001b3U;
  Fnv entry;
  entry.add(encode_membership(membership).view());
  const std::uint64_t hash = (entry.value() ^ (entry.value() >> 32U)) * kOdd;
  return MembershipId(hash ^ (hash >> 29U));
}

std::string text_of(MembershipId id) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text(16, '0');
  std::uint64_t left = id.value();
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, left >>= 4U) {
    *digit = kDigits[left & 15U];
  }
  return text;
}

std::optional<MembershipId> membership_id_of(std::string_view text) {
  if (text.empty() || text.size() > 16) return std::nullopt;
  std::uint64_t id = 0;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    const bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (!digit && !letter) return std::nullopt;
    const int value = digit ? c - '0' : (c | 0x20) - 'a' + 10;
    id = id << 4U | static_cast<std::uint64_t>(value);
  }
  return MembershipId(id);
}

Bytes encode_membership(const Membership& membership) {
  LEASEHOLD_ASSERT(membership.members.size() <= kMembersMax);
  LEASEHOLD_ASSERT(membership.voters.size() <= membership.members.size());
  LEASEHOLD_ASSERT(membership.leaving.size() <= membership.outgoing_voters.size());
  std::string out;
  LittleWriter to(out);
  to.u8(format_of(membership));
  to.u16(static_cast<std::uint16_t>(membership.members.size()));
  for (const Member& member : membership.members) {
    LEASEHOLD_ASSERT(member.address.size() <= kAddressMax);
    std::uint8_t flags = 0;
    if (contains(membership.voters, member.id)) flags |= kVotes;
    if (contains(membership.outgoing_voters, member.id)) flags |= kVotesInOutgoing;
    if (contains(membership.leaving, member.id)) flags |= kLeaves;
    if (contains(membership.witnesses, member.id)) flags |= kWitness;
    to.u64(member.id.value());
    to.u64(member.uuid.high);
    to.u64(member.uuid.low);
    to.u8(flags);
    to.u16(static_cast<std::uint16_t>(member.address.size()));
    to.bytes(member.address);
  }
  if (membership.settings) encode_settings(*membership.settings, to);
  return Bytes(std::move(out));
}

Result<Membership> decode_membership(std::string_view bytes) {
  LittleReader in(bytes);
  const std::uint8_t format = in.u8();
  if (!in.ok()) return malformed("no bytes");
  if (format < kFormatPlain || format > kFormatWithSettings) {
    return Error{ErrorCode::unsupported_format,
                 "membership entry has format " + std::to_string(format) +
                     ", this build knows formats 1 to 3; use the build that wrote it or a newer "
                     "one"};
  }
  std::uint64_t known = kVotes | kVotesInOutgoing | kLeaves;
  if (format >= kFormatWithWitnesses) known |= kWitness;
  const std::uint16_t count = in.u16();
  if (count > kMembersMax) return malformed("more than 64 members");
  Membership membership;
  bool full_voter = false;
  for (std::uint16_t i = 0; i < count && in.ok(); ++i) {
    Member member;
    member.id = NodeId(in.u64());
    member.uuid.high = in.u64();
    member.uuid.low = in.u64();
    const std::uint64_t flags = in.u8();
    const std::uint16_t length = in.u16();
    if (length > kAddressMax) return malformed("an address of more than 512 bytes");
    member.address = std::string(in.take(length));
    if (member.id == kNobody) return malformed("a member without an id");
    if (!membership.members.empty() && membership.members.back().id >= member.id) {
      return malformed("members are not ascending by id");
    }
    if ((flags & ~known) != 0) return malformed("unknown flags");
    if ((flags & kLeaves) != 0 && (flags & (kVotes | kVotesInOutgoing)) != kVotesInOutgoing) {
      return malformed("a member leaves that is not an outgoing voter alone");
    }
    if ((flags & kVotes) != 0) membership.voters.push_back(member.id);
    if ((flags & kVotesInOutgoing) != 0) membership.outgoing_voters.push_back(member.id);
    if ((flags & kLeaves) != 0) membership.leaving.push_back(member.id);
    if ((flags & kWitness) != 0) membership.witnesses.push_back(member.id);
    full_voter = full_voter || (flags & (kVotes | kWitness)) == kVotes;
    membership.members.push_back(std::move(member));
  }
  if (format == kFormatWithSettings) {
    Result<GroupSettings> settings = decode_settings(in);
    if (!settings.ok()) return settings.error();
    membership.settings = settings.value();
  }
  if (!in.ok()) return malformed("bytes are missing");
  if (!in.at_end()) return malformed("bytes are left over");
  if (membership.voters.empty()) return malformed("no voters");
  if (!full_voter) return malformed("all voters are witnesses");
  if (format == kFormatWithWitnesses && membership.witnesses.empty()) {
    return malformed("format 2 without a witness");
  }
  return membership;
}

}  // namespace leasehold::raft
