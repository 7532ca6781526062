// Numbers are big-endian.
//
//   header:  {format u8}{kind u8}{0 u16}{check u32: CRC32C of the other 60 bytes}
//            {salt u64}{sequence u64}{synced through u64}{body bytes u64}{body check u32}{20 x 0}
//
//   head:    {segment u64}{file bytes u64}{previous salt u64}
//            {cluster u64}{node u64}{uuid high u64}{uuid low u64}{group u64}
//   batch:   in the log of one group {section}, in a shared log {u8 1}{group u64}{section},
//            {u8 2}{process record}, several of them
//   section: {state record}{first u64}{previous term u64}{count u32}
//            {flags u8: bit 0 confirmed, bit 1 base, bit 2 reset; in a shared log bit 3 moved,
//            bit 4 removed}
//            [{length u32}{membership}] [{base term u64}{base index u64}{length u32}{membership}]
//            {entries}
//   entry:   {check u32: CRC32C of the rest}{payload bytes u32}{kind u8}{index u64}{term u64}
//            {payload}
//
//   process record: {count u32}, then {holder u64}{uuid high u64}{uuid low u64}{D i64 ns} of each
//   state record: {term u64}{voted for u64}{flags u8: bit 0 vote committed}{promise holder u64}
//                 {promise term u64}{promise duration i64 ns}{last term u64}{last index u64}
#include <leasehold/base/assert.h>
#include <leasehold/base/coding.h>
#include <leasehold/storage/segment_record.h>
#include <leasehold/wire/crc32c.h>

#include <fmt/format.h>

#include <utility>

namespace leasehold::storage {
namespace {

constexpr std::uint8_t kVoteCommittedFlag = 1;
constexpr std::uint8_t kConfirmedFlag = 1;
constexpr std::uint8_t kBaseFlag = 2;
constexpr std::uint8_t kResetFlag = 4;
constexpr std::uint8_t kMovedFlag = 8;
constexpr std::uint8_t kRemovedFlag = 16;
constexpr std::uint8_t kOfGroup = 1;
constexpr std::uint8_t kOfProcess = 2;
constexpr std::size_t kHeaderCheckOffset = 4;

Error damaged(std::string_view what) {
  return {ErrorCode::corrupted, fmt::format("the {} is damaged", what)};
}

void put_state(BigWriter& to, const StateRecord& record) {
  const raft::HardState& hard = record.hard_state;
  to.u64(hard.term.value());
  to.u64(hard.voted_for.value());
  to.u8(hard.vote_committed ? kVoteCommittedFlag : std::uint8_t{0});
  to.u64(hard.promise.holder.value());
  to.u64(hard.promise.term.value());
  to.u64(static_cast<std::uint64_t>(hard.promise.duration.count()));
  to.u64(record.last.term.value());
  to.u64(record.last.index.value());
}

/// None: damaged.
std::optional<StateRecord> take_state(BigReader& in) {
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

// A membership without members has no bytes. A node writes it when it joins a group that it does
// not know yet.
void put_membership(BigWriter& to, const raft::Membership& membership) {
  if (membership.members.empty()) return to.u32(0);
  to.sized(raft::encode_membership(membership).view());
}

Result<raft::Membership> take_membership(std::string_view what, BigReader& in) {
  const std::string_view bytes = in.sized();
  if (!in.ok()) return damaged(what);
  if (bytes.empty()) return raft::Membership{};
  auto membership = raft::decode_membership(bytes);
  if (membership.ok()) return membership;
  return Error{membership.error().code == ErrorCode::unsupported_format
                   ? ErrorCode::unsupported_format
                   : ErrorCode::corrupted,
               fmt::format("the {}: {}", what, membership.error().message)};
}

std::string header_bytes(const FrameHeader& header) {
  std::string out;
  out.reserve(kFrameHeaderBytes);
  BigWriter to(out);
  to.u8(header.format);
  to.u8(static_cast<std::uint8_t>(header.kind));
  to.u16(0);
  to.u32(0);
  to.u64(header.salt);
  to.u64(header.sequence);
  to.u64(header.synced_through);
  to.u64(header.body_bytes);
  to.u32(header.body_check);
  out.resize(kFrameHeaderBytes, '\0');
  to.overwrite_u32(kHeaderCheckOffset,
                   wire::crc32c(std::string_view(out).substr(kHeaderCheckOffset + 4),
                                wire::crc32c(std::string_view(out).substr(0, kHeaderCheckOffset))));
  return out;
}

}  // namespace

Error unsupported_format(std::string_view what, unsigned long found) {
  return {ErrorCode::unsupported_format,
          fmt::format("{} has format {}, this build knows {} and {}: {}", what, found, kLogFormat,
                      kSharedLogFormat,
                      found > kSharedLogFormat
                          ? "use a newer build"
                          : "go on with the build that wrote it, or wipe the node's data folder "
                            "and let the node join again as a new member")};
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
  BigWriter to(out);
  to.u64(body.segment);
  to.u64(body.segment_bytes);
  to.u64(body.previous_salt);
  to.u64(body.cluster_id);
  to.u64(body.id.value());
  to.u64(body.uuid.high);
  to.u64(body.uuid.low);
  to.u64(body.group.value());
  return out;
}

Result<HeadBody> decode_head(std::string_view bytes) {
  BigReader in(bytes);
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

BatchEncoder::BatchEncoder(std::string& out, std::uint8_t format) : out_(out), format_(format) {
  LEASEHOLD_ASSERT(known_format(format));
  out_.clear();
  out_.resize(kFrameHeaderBytes, '\0');
}

void BatchEncoder::begin(raft::GroupId group, const BatchBody& body) {
  const bool shared = format_ == kSharedLogFormat;
  LEASEHOLD_ASSERT(shared || (out_.size() == kFrameHeaderBytes && !body.moved && !body.removed));
  BigWriter to(out_);
  if (shared) {
    to.u8(kOfGroup);
    to.u64(group.value());
  }
  const std::size_t begun = out_.size();
  put_state(to, body.state);
  to.u64(body.first.value());
  to.u64(body.previous_term.value());
  to.u32(body.count);
  const auto& [confirmed, base] = body.foundation;
  LEASEHOLD_ASSERT((confirmed || !base) && (base || !body.reset));
  to.u8(static_cast<std::uint8_t>((confirmed ? kConfirmedFlag : 0U) | (base ? kBaseFlag : 0U) |
                                  (body.reset ? kResetFlag : 0U) | (body.moved ? kMovedFlag : 0U) |
                                  (body.removed ? kRemovedFlag : 0U)));
  LEASEHOLD_ASSERT(out_.size() == begun + kBatchBodyBytes);
  if (confirmed) put_membership(to, *confirmed);
  if (base) {
    to.u64(base->id.term.value());
    to.u64(base->id.index.value());
    put_membership(to, base->membership);
  }
}

void BatchEncoder::add(const ProcessRecord& record) {
  LEASEHOLD_ASSERT(format_ == kSharedLogFormat);
  BigWriter to(out_);
  to.u8(kOfProcess);
  to.u32(static_cast<std::uint32_t>(record.supports.size()));
  for (const SupportRecord& support : record.supports) {
    to.u64(support.holder.value());
    to.u64(support.directory.high);
    to.u64(support.directory.low);
    to.u64(static_cast<std::uint64_t>(support.duration.count()));
  }
  to.u32(static_cast<std::uint32_t>(record.retired.size()));
  for (const RetiredRecord& retired : record.retired) {
    to.u64(retired.group.value());
    to.u64(retired.highest.value());
  }
}

void BatchEncoder::add(const raft::Entry& entry) {
  LEASEHOLD_ASSERT(entry.payload.size() <= kPayloadBytesMax);
  const std::size_t start = out_.size();
  BigWriter to(out_);
  to.u32(0);
  to.u32(static_cast<std::uint32_t>(entry.payload.size()));
  to.u8(static_cast<std::uint8_t>(entry.kind));
  to.u64(entry.id.index.value());
  to.u64(entry.id.term.value());
  to.bytes(entry.payload.view());
  to.overwrite_u32(start, wire::crc32c(std::string_view(out_).substr(start + 4)));
}

void BatchEncoder::finish(FrameHeader header) {
  LEASEHOLD_ASSERT(header.format == format_);
  const std::string_view body = std::string_view(out_).substr(kFrameHeaderBytes);
  header.body_bytes = body.size();
  header.body_check = wire::crc32c(body);
  out_.replace(0, kFrameHeaderBytes, header_bytes(header));
  out_.resize(header.frame_bytes(), '\0');
}

HeaderRead decode_header(std::string_view bytes) {
  LEASEHOLD_ASSERT(bytes.size() >= kFrameHeaderBytes);
  bytes = bytes.substr(0, kFrameHeaderBytes);
  BigReader in(bytes);
  const std::uint8_t format = in.u8();
  const std::uint8_t kind = in.u8();
  const std::uint16_t zero = in.u16();
  const std::uint32_t check = in.u32();
  if (check != wire::crc32c(in.rest(), wire::crc32c(bytes.substr(0, kHeaderCheckOffset)))) {
    return {};
  }
  if (!known_format(format)) return {std::nullopt, format};
  FrameHeader header;
  header.format = format;
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

namespace {

Result<BatchBody> take_batch(BigReader& in, bool shared) {
  BatchBody body;
  const auto state = take_state(in);
  body.first = raft::Index(in.u64());
  body.previous_term = raft::Term(in.u64());
  body.count = in.u32();
  const std::uint8_t flags = in.u8();
  const bool confirmed = (flags & kConfirmedFlag) != 0;
  const bool base = (flags & kBaseFlag) != 0;
  body.reset = (flags & kResetFlag) != 0;
  body.moved = (flags & kMovedFlag) != 0;
  body.removed = (flags & kRemovedFlag) != 0;
  const unsigned known =
      kConfirmedFlag | kBaseFlag | kResetFlag | (shared ? kMovedFlag | kRemovedFlag : 0U);
  if (!state || !in.ok() || (flags & ~known) != 0 || (base && !confirmed) ||
      (body.reset && (!base || body.moved)) ||
      (body.removed && (flags != kRemovedFlag || body.count > 0))) {
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
  return body;
}

Result<ProcessRecord> take_process(BigReader& in) {
  ProcessRecord record;
  const std::uint32_t count = in.u32();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    SupportRecord support;
    support.holder = raft::NodeId(in.u64());
    support.directory.high = in.u64();
    support.directory.low = in.u64();
    support.duration = raft::Duration(static_cast<std::int64_t>(in.u64()));
    if (support.duration.count() < 0) return damaged("record of the process");
    record.supports.push_back(support);
  }
  const std::uint32_t groups = in.u32();
  for (std::uint32_t i = 0; i < groups && in.ok(); ++i) {
    const raft::GroupId group(in.u64());
    record.retired.push_back({group, raft::NodeId(in.u64())});
  }
  if (!in.ok()) return damaged("record of the process");
  return record;
}

}  // namespace

Result<Section> take_section(std::string_view& bytes, std::uint8_t format, raft::GroupId group) {
  const bool shared = format == kSharedLogFormat;
  BigReader in(bytes);
  Section section;
  section.group = group;
  const std::uint8_t kind = shared ? in.u8() : kOfGroup;
  if (kind == kOfProcess) {
    auto process = take_process(in);
    if (!process) return process.error();
    section.process = std::move(process).value();
  } else if (kind == kOfGroup) {
    if (shared) section.group = raft::GroupId(in.u64());
    auto batch = take_batch(in, shared);
    if (!batch) return batch.error();
    section.batch = std::move(batch).value();
  } else {
    return damaged("batch");
  }
  bytes = in.rest();
  return section;
}

Result<EntryView> take_entry(std::string_view& bytes) {
  BigReader in(bytes);
  const std::uint32_t check = in.u32();
  const std::string_view checked = in.rest();
  const std::uint32_t payload_bytes = in.u32();
  const std::uint8_t kind = in.u8();
  EntryView entry;
  entry.id.index = raft::Index(in.u64());
  entry.id.term = raft::Term(in.u64());
  entry.payload = in.take(payload_bytes);
  if (!in.ok() || kind > static_cast<std::uint8_t>(raft::EntryKind::membership) ||
      check != wire::crc32c(checked.substr(0, kEntryHeadBytes - 4 + payload_bytes))) {
    return damaged("entry");
  }
  entry.kind = static_cast<raft::EntryKind>(kind);
  bytes = in.rest();
  return entry;
}

}  // namespace leasehold::storage
