// Numbers are big-endian.
//
//   header:  {format u8}{kind u8}{0 u16}{check u32: CRC32C of the other 60 bytes}
//            {salt u64}{sequence u64}{synced through u64}{body bytes u64}{body check u32}{20 x 0}
//
//   head:    {segment u64}{file bytes u64}{previous salt u64}
//            {cluster u64}{node u64}{uuid high u64}{uuid low u64}{group u64}
//   batch:   {state record}{first u64}{previous term u64}{count u32}
//            {flags u8: bit 0 confirmed, bit 1 base, bit 2 reset}
//            [{length u32}{membership}] [{base term u64}{base index u64}{length u32}{membership}]
//            {entries}
//   entry:   {check u32: CRC32C of the rest}{payload bytes u32}{kind u8}{index u64}{term u64}
//            {payload}
//
//   state record: {term u64}{voted for u64}{flags u8: bit 0 vote committed}{promise holder u64}
//                 {promise term u64}{promise duration i64 ns}{last term u64}{last index u64}
#include <leasehold/base/assert.h>
#include <leasehold/storage/segment_record.h>
#include <leasehold/wire/crc32c.h>

#include <utility>

namespace leasehold::storage {
namespace {

constexpr std::uint8_t kVoteCommittedFlag = 1;
constexpr std::uint8_t kConfirmedFlag = 1;
constexpr std::uint8_t kBaseFlag = 2;
constexpr std::uint8_t kResetFlag = 4;
constexpr std::size_t kHeaderCheckOffset = 4;

template <class Number>
void put(std::string& out, Number value) {
  for (std::size_t i = sizeof(Number); i-- > 0;) {
    out.push_back(static_cast<char>(static_cast<std::uint8_t>(value >> (8 * i))));
  }
}

/// Puts `value` over the four bytes at `offset`.
void patch_u32(std::string& out, std::size_t offset, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) {
    out[offset + i] = static_cast<char>(static_cast<std::uint8_t>(value >> (24 - 8 * i)));
  }
}

/// Takes numbers off the front. A take past the end gives zero and clears ok().
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && rest_.empty(); }
  std::string_view rest() const { return rest_; }
  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  std::string_view bytes(std::size_t count) {
    if (rest_.size() < count) {
      ok_ = false;
      rest_ = {};
    }
    const std::string_view out = rest_.substr(0, count);
    rest_.remove_prefix(out.size());
    return out;
  }

 private:
  std::uint64_t number(std::size_t width) {
    const std::string_view taken = bytes(width);
    std::uint64_t value = 0;
    for (const char c : taken) value = (value << 8U) | static_cast<unsigned char>(c);
    return value;
  }

  std::string_view rest_;
  bool ok_ = true;
};

Error damaged(std::string_view what) {
  return {ErrorCode::corrupted, "the " + std::string(what) + " is damaged"};
}

void put_state(std::string& out, const StateRecord& record) {
  const raft::HardState& hard = record.hard_state;
  put(out, hard.term.value());
  put(out, hard.voted_for.value());
  put(out, hard.vote_committed ? kVoteCommittedFlag : std::uint8_t{0});
  put(out, hard.promise.holder.value());
  put(out, hard.promise.term.value());
  put(out, static_cast<std::uint64_t>(hard.promise.duration.count()));
  put(out, record.last.term.value());
  put(out, record.last.index.value());
}

/// None: damaged.
std::optional<StateRecord> take_state(Cursor& in) {
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
  if (!in.ok() || (flags & ~kVoteCommittedFlag) != 0 || hard.promise.duration.count() < 0) {
    return std::nullopt;
  }
  return record;
}

// Of no members: no bytes. It stands where a node has joined a group that it knows nothing of yet.
void put_membership(std::string& out, const raft::Membership& membership) {
  if (membership.members.empty()) return put(out, std::uint32_t{0});
  const Bytes bytes = raft::encode_membership(membership);
  put(out, static_cast<std::uint32_t>(bytes.size()));
  out.append(bytes.view());
}

Result<raft::Membership> take_membership(std::string_view what, Cursor& in) {
  const std::string_view bytes = in.bytes(in.u32());
  if (!in.ok()) return damaged(what);
  if (bytes.empty()) return raft::Membership{};
  auto membership = raft::decode_membership(bytes);
  if (membership.ok()) return membership;
  return Error{membership.error().code == ErrorCode::unsupported_format
                   ? ErrorCode::unsupported_format
                   : ErrorCode::corrupted,
               "the " + std::string(what) + ": " + membership.error().message};
}

std::string header_bytes(const FrameHeader& header) {
  std::string out;
  out.reserve(kFrameHeaderBytes);
  put(out, kLogFormat);
  put(out, static_cast<std::uint8_t>(header.kind));
  put(out, std::uint16_t{0});
  put(out, std::uint32_t{0});
  put(out, header.salt);
  put(out, header.sequence);
  put(out, header.synced_through);
  put(out, header.body_bytes);
  put(out, header.body_check);
  out.resize(kFrameHeaderBytes, '\0');
  patch_u32(out, kHeaderCheckOffset,
            wire::crc32c(std::string_view(out).substr(kHeaderCheckOffset + 4),
                         wire::crc32c(std::string_view(out).substr(0, kHeaderCheckOffset))));
  return out;
}

}  // namespace

Error unsupported_format(std::string_view what, unsigned long found) {
  return {ErrorCode::unsupported_format,
          std::string(what) + " has format " + std::to_string(found) + ", this build knows " +
              std::to_string(kLogFormat) +
              (found > kLogFormat
                   ? ": use a newer build"
                   : ": go on with the build that wrote it, or wipe the node's data folder and let "
                     "the node join again as a new member")};
}

std::string encode_frame(FrameHeader header, std::string_view body) {
  header.body_bytes = body.size();
  header.body_check = wire::crc32c(body);
  std::string out = header_bytes(header);
  out.append(body);
  out.resize(header.frame_bytes(), '\0');
  return out;
}

std::string encode_head(const HeadBody& body) {
  std::string out;
  put(out, body.segment);
  put(out, body.segment_bytes);
  put(out, body.previous_salt);
  put(out, body.cluster_id);
  put(out, body.id.value());
  put(out, body.uuid.high);
  put(out, body.uuid.low);
  put(out, body.group.value());
  return out;
}

Result<HeadBody> decode_head(std::string_view bytes) {
  Cursor in(bytes);
  HeadBody body;
  body.segment = in.u64();
  body.segment_bytes = in.u64();
  body.previous_salt = in.u64();
  body.cluster_id = in.u64();
  body.id = raft::NodeId(in.u64());
  body.uuid.high = in.u64();
  body.uuid.low = in.u64();
  body.group = raft::GroupId(in.u64());
  if (!in.at_end()) return damaged("head of the segment");
  return body;
}

BatchEncoder::BatchEncoder(std::string& out, const BatchBody& body) : out_(out) {
  out_.clear();
  out_.resize(kFrameHeaderBytes, '\0');
  put_state(out_, body.state);
  put(out_, body.first.value());
  put(out_, body.previous_term.value());
  put(out_, body.count);
  const auto& [confirmed, base] = body.foundation;
  LEASEHOLD_ASSERT((confirmed || !base) && (base || !body.reset));
  put(out_, static_cast<std::uint8_t>((confirmed ? kConfirmedFlag : 0U) | (base ? kBaseFlag : 0U) |
                                      (body.reset ? kResetFlag : 0U)));
  LEASEHOLD_ASSERT(out_.size() == kFrameHeaderBytes + kBatchBodyBytes);
  if (confirmed) put_membership(out_, *confirmed);
  if (base) {
    put(out_, base->id.term.value());
    put(out_, base->id.index.value());
    put_membership(out_, base->membership);
  }
}

void BatchEncoder::add(const raft::Entry& entry) {
  LEASEHOLD_ASSERT(entry.payload.size() <= kPayloadBytesMax);
  const std::size_t start = out_.size();
  put(out_, std::uint32_t{0});
  put(out_, static_cast<std::uint32_t>(entry.payload.size()));
  put(out_, static_cast<std::uint8_t>(entry.kind));
  put(out_, entry.id.index.value());
  put(out_, entry.id.term.value());
  out_.append(entry.payload.view());
  patch_u32(out_, start, wire::crc32c(std::string_view(out_).substr(start + 4)));
}

void BatchEncoder::finish(FrameHeader header) {
  const std::string_view body = std::string_view(out_).substr(kFrameHeaderBytes);
  header.body_bytes = body.size();
  header.body_check = wire::crc32c(body);
  out_.replace(0, kFrameHeaderBytes, header_bytes(header));
  out_.resize(header.frame_bytes(), '\0');
}

HeaderRead decode_header(std::string_view bytes) {
  LEASEHOLD_ASSERT(bytes.size() >= kFrameHeaderBytes);
  bytes = bytes.substr(0, kFrameHeaderBytes);
  Cursor in(bytes);
  const std::uint8_t format = in.u8();
  const std::uint8_t kind = in.u8();
  const std::uint16_t zero = in.u16();
  const std::uint32_t check = in.u32();
  if (check != wire::crc32c(in.rest(), wire::crc32c(bytes.substr(0, kHeaderCheckOffset)))) {
    return {};
  }
  if (format != kLogFormat) return {std::nullopt, format};
  FrameHeader header;
  header.kind = static_cast<FrameKind>(kind);
  header.salt = in.u64();
  header.sequence = in.u64();
  header.synced_through = in.u64();
  header.body_bytes = in.u64();
  header.body_check = in.u32();
  const bool padded = in.rest().find_first_not_of('\0') == std::string_view::npos;
  const bool known = kind >= static_cast<std::uint8_t>(FrameKind::head) &&
                     kind <= static_cast<std::uint8_t>(FrameKind::mark);
  if (zero != 0 || !padded || !known) return {};
  return {header, std::nullopt};
}

Result<BatchBody> take_batch(std::string_view& bytes) {
  Cursor in(bytes);
  BatchBody body;
  const auto state = take_state(in);
  body.first = raft::Index(in.u64());
  body.previous_term = raft::Term(in.u64());
  body.count = in.u32();
  const std::uint8_t flags = in.u8();
  const bool confirmed = (flags & kConfirmedFlag) != 0;
  const bool base = (flags & kBaseFlag) != 0;
  body.reset = (flags & kResetFlag) != 0;
  if (!state || !in.ok() || (flags & ~(kConfirmedFlag | kBaseFlag | kResetFlag)) != 0 ||
      (base && !confirmed) || (body.reset && !base)) {
    return damaged("batch");
  }
  body.state = *state;
  if (confirmed) {
    auto set = take_membership("confirmed set of members", in);
    if (!set) return set.error();
    body.foundation.confirmed = std::move(set).value();
  }
  if (base) {
    raft::LogBase begin;
    begin.id.term = raft::Term(in.u64());
    begin.id.index = raft::Index(in.u64());
    auto membership = take_membership("membership at the log's base", in);
    if (!membership) return membership.error();
    begin.membership = std::move(membership).value();
    body.foundation.base = std::move(begin);
  }
  bytes = in.rest();
  return body;
}

Result<EntryView> take_entry(std::string_view& bytes) {
  Cursor in(bytes);
  const std::uint32_t check = in.u32();
  const std::string_view checked = in.rest();
  const std::uint32_t payload_bytes = in.u32();
  const std::uint8_t kind = in.u8();
  EntryView entry;
  entry.id.index = raft::Index(in.u64());
  entry.id.term = raft::Term(in.u64());
  entry.payload = in.bytes(payload_bytes);
  if (!in.ok() || kind > static_cast<std::uint8_t>(raft::EntryKind::membership) ||
      check != wire::crc32c(checked.substr(0, kEntryHeadBytes - 4 + payload_bytes))) {
    return damaged("entry");
  }
  entry.kind = static_cast<raft::EntryKind>(kind);
  bytes = in.rest();
  return entry;
}

}  // namespace leasehold::storage
