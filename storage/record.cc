// Numbers are big-endian, so that keys sort by their numbers.
//
//   key of the identity:  'n' {1 u8}
//   key of a record:      'g' {group u64}{kind u8}
//   key of an entry:      'g' {group u64}{kind u8 = 1}{index u64}
//
//   identity:   {format u8}{cluster u64}{node u64}{uuid high u64}{uuid low u64}
//   state:      {format u8}{term u64}{voted for u64}{flags u8: bit 0 vote committed}
//               {promise holder u64}{promise term u64}{promise duration i64 ns}
//               {last term u64}{last index u64}
//   confirmed:  {format u8}{membership, see raft/membership.cc}
//   base:       {format u8}{base term u64}{base index u64}{membership}
//   entry:      {format u8}{kind u8}{term u64}{previous term u64}{payload}
#include <leasehold/storage/record.h>

#include <utility>

namespace leasehold::storage {
namespace {

constexpr char kNodeSpace = 'n';
constexpr char kGroupSpace = 'g';
constexpr char kIdentityKind = 1;
constexpr std::uint8_t kVoteCommittedFlag = 1;

void put_u8(std::string& out, std::uint8_t value) {
  out.push_back(static_cast<char>(value));
}

void put_u64(std::string& out, std::uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8)
    put_u8(out, static_cast<std::uint8_t>(value >> shift));
}

std::string start_record() {
  return std::string(1, static_cast<char>(kLogFormat));
}

/// Takes numbers off the front. A take past the end gives zero and clears ok().
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && rest_.empty(); }
  std::string_view rest() const { return rest_; }
  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint64_t u64() { return number(8); }

 private:
  std::uint64_t number(std::size_t width) {
    if (rest_.size() < width) {
      ok_ = false;
      rest_ = {};
      return 0;
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      value = (value << 8U) | static_cast<unsigned char>(rest_[i]);
    }
    rest_.remove_prefix(width);
    return value;
  }

  std::string_view rest_;
  bool ok_ = true;
};

Error damaged(std::string_view what) {
  return {ErrorCode::corrupted, "the " + std::string(what) + " record is damaged"};
}

/// A cursor behind the format byte.
Result<Cursor> open_record(std::string_view what, std::string_view bytes) {
  Cursor in(bytes);
  const std::uint8_t format = in.u8();
  if (!in.ok()) return damaged(what);
  if (format != kLogFormat)
    return unsupported_format("the " + std::string(what) + " record", format);
  return in;
}

Result<raft::Membership> membership_of(std::string_view what, std::string_view bytes) {
  auto membership = raft::decode_membership(bytes);
  if (membership.ok()) return membership;
  return Error{membership.error().code == ErrorCode::unsupported_format
                   ? ErrorCode::unsupported_format
                   : ErrorCode::corrupted,
               "the " + std::string(what) + " record: " + membership.error().message};
}

}  // namespace

Error unsupported_format(std::string_view what, unsigned long found) {
  return {ErrorCode::unsupported_format, std::string(what) + " has format " +
                                             std::to_string(found) + ", this build knows " +
                                             std::to_string(kLogFormat) + ": use a newer build"};
}

std::string identity_key() {
  return {kNodeSpace, kIdentityKind};
}

std::string record_key(raft::GroupId group, RecordKind kind) {
  std::string key(1, kGroupSpace);
  put_u64(key, group.value());
  put_u8(key, static_cast<std::uint8_t>(kind));
  return key;
}

std::string entry_key(raft::GroupId group, raft::Index index) {
  std::string key = record_key(group, RecordKind::entry);
  put_u64(key, index.value());
  return key;
}

Result<raft::Index> decode_entry_key(raft::GroupId group, std::string_view key) {
  const std::string prefix = record_key(group, RecordKind::entry);
  if (key.substr(0, prefix.size()) != prefix) return damaged("key of an entry");
  Cursor in(key.substr(prefix.size()));
  const std::uint64_t index = in.u64();
  if (!in.at_end()) return damaged("key of an entry");
  return raft::Index(index);
}

std::string encode_identity(const IdentityRecord& record) {
  std::string out = start_record();
  put_u64(out, record.cluster_id);
  put_u64(out, record.id.value());
  put_u64(out, record.uuid.high);
  put_u64(out, record.uuid.low);
  return out;
}

Result<IdentityRecord> decode_identity(std::string_view bytes) {
  auto opened = open_record("identity", bytes);
  if (!opened) return opened.error();
  Cursor in = opened.value();
  IdentityRecord record;
  record.cluster_id = in.u64();
  record.id = raft::NodeId(in.u64());
  record.uuid.high = in.u64();
  record.uuid.low = in.u64();
  if (!in.at_end()) return damaged("identity");
  return record;
}

std::string encode_state(const StateRecord& record) {
  const raft::HardState& hard = record.hard_state;
  std::string out = start_record();
  put_u64(out, hard.term.value());
  put_u64(out, hard.voted_for.value());
  put_u8(out, hard.vote_committed ? kVoteCommittedFlag : 0);
  put_u64(out, hard.promise.holder.value());
  put_u64(out, hard.promise.term.value());
  put_u64(out, static_cast<std::uint64_t>(hard.promise.duration.count()));
  put_u64(out, record.last.term.value());
  put_u64(out, record.last.index.value());
  return out;
}

Result<StateRecord> decode_state(std::string_view bytes) {
  auto opened = open_record("state", bytes);
  if (!opened) return opened.error();
  Cursor in = opened.value();
  StateRecord record;
  raft::HardState& hard = record.hard_state;
  hard.term = raft::Term(in.u64());
  hard.voted_for = raft::NodeId(in.u64());
  const std::uint8_t flags = in.u8();
  hard.vote_committed = (flags & kVoteCommittedFlag) != 0;
  hard.promise.holder = raft::NodeId(in.u64());
  hard.promise.term = raft::Term(in.u64());
  hard.promise.duration = raft::Duration(static_cast<std::int64_t>(in.u64()));
  record.last.term = raft::Term(in.u64());
  record.last.index = raft::Index(in.u64());
  if (!in.at_end() || (flags & ~kVoteCommittedFlag) != 0 || hard.promise.duration.count() < 0) {
    return damaged("state");
  }
  return record;
}

std::string encode_confirmed(const raft::Membership& members) {
  return start_record().append(raft::encode_membership(members).view());
}

Result<raft::Membership> decode_confirmed(std::string_view bytes) {
  auto opened = open_record("confirmed set", bytes);
  if (!opened) return opened.error();
  return membership_of("confirmed set", opened.value().rest());
}

std::string encode_base(const BaseRecord& record) {
  std::string out = start_record();
  put_u64(out, record.base.term.value());
  put_u64(out, record.base.index.value());
  return out.append(raft::encode_membership(record.membership).view());
}

Result<BaseRecord> decode_base(std::string_view bytes) {
  auto opened = open_record("base", bytes);
  if (!opened) return opened.error();
  Cursor in = opened.value();
  BaseRecord record;
  record.base.term = raft::Term(in.u64());
  record.base.index = raft::Index(in.u64());
  if (!in.ok()) return damaged("base");
  auto membership = membership_of("base", in.rest());
  if (!membership) return membership.error();
  record.membership = std::move(membership).value();
  return record;
}

std::string encode_entry_head(const EntryHead& head) {
  std::string out = start_record();
  put_u8(out, static_cast<std::uint8_t>(head.kind));
  put_u64(out, head.term.value());
  put_u64(out, head.previous_term.value());
  return out;
}

Result<EntryHead> decode_entry_head(std::string_view bytes) {
  auto opened = open_record("entry", bytes);
  if (!opened) return opened.error();
  Cursor in = opened.value();
  EntryHead head;
  const std::uint8_t kind = in.u8();
  head.term = raft::Term(in.u64());
  head.previous_term = raft::Term(in.u64());
  if (!in.ok() || kind > static_cast<std::uint8_t>(raft::EntryKind::membership)) {
    return damaged("entry");
  }
  head.kind = static_cast<raft::EntryKind>(kind);
  return head;
}

}  // namespace leasehold::storage
