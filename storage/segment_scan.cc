#include <leasehold/storage/segment_scan.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace leasehold::storage {
namespace {

Tail damaged_tail(std::string why) {
  return {TailKind::damaged, std::move(why)};
}

std::string_view part(std::string_view segment, std::uint64_t from, std::uint64_t to) {
  from = std::min<std::uint64_t>(from, segment.size());
  to = std::min<std::uint64_t>(std::max(from, to), segment.size());
  return segment.substr(from, to - from);
}

/// The header at `at`; none if there is none of this segment.
std::optional<FrameHeader> header_at(std::string_view segment, std::uint64_t salt,
                                     std::uint64_t at) {
  const std::string_view bytes = part(segment, at, at + kFrameHeaderBytes);
  // Most places hold none, and comparing a few bytes is cheaper than a checksum.
  if (bytes.size() < kFrameHeaderBytes || !known_format(static_cast<unsigned char>(bytes[0]))) {
    return {};
  }
  const auto header = decode_header(bytes).header;
  if (!header || header->salt != salt) return std::nullopt;
  return header;
}

bool is_mark(std::string_view segment, std::uint64_t salt, std::uint64_t at) {
  const auto header = header_at(segment, salt, at);
  return header && header->kind == FrameKind::mark;
}

/// Whether the part of a sector from `from` to `to` is as it was before a frame came there: zeroes,
/// or a mark that stood at the sector's beginning.
bool untouched(std::string_view segment, std::uint64_t salt, std::uint64_t from, std::uint64_t to) {
  if (from % kSectorBytes == 0 && is_mark(segment, salt, from)) from += kFrameHeaderBytes;
  return all_zero(part(segment, from, to));
}

/// Whether a header that stands behind `at` says that frame `sequence` was durable.
bool was_durable(std::string_view segment, std::uint64_t salt, std::uint64_t at,
                 std::uint64_t sequence) {
  for (std::uint64_t next = at + kFrameAlignment; next < segment.size(); next += kFrameAlignment) {
    const auto header = header_at(segment, salt, next);
    if (header && header->synced_through >= sequence) return true;
  }
  return false;
}

/// A frame with a good header whose body does not fit its checksum.
Tail judge_body(std::string_view segment, std::uint64_t salt, std::uint64_t at,
                std::uint64_t sequence, const FrameHeader& header) {
  if (header.sequence != sequence) return damaged_tail("another frame stands there");
  if (header.body_bytes > segment.size() - at - kFrameHeaderBytes) {
    return damaged_tail("the frame would reach past the end of the file");
  }
  if (!all_zero(part(segment, at + header.frame_bytes(), segment.size()))) {
    return damaged_tail("the frame's content is damaged, and something stands behind it");
  }
  const std::uint64_t end = at + kFrameHeaderBytes + header.body_bytes;
  for (std::uint64_t sector = align_up(at + 1, kSectorBytes); sector < end;
       sector += kSectorBytes) {
    if (untouched(segment, salt, sector, std::min(end, sector + kSectorBytes))) {
      return {TailKind::torn, {}};
    }
  }
  return damaged_tail("all of the frame was written, but its content is damaged");
}

}  // namespace

bool all_zero(std::string_view bytes) {
  if (bytes.empty()) return true;
  return bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

Tail judge_tail(std::string_view segment, std::uint64_t salt, std::uint64_t at,
                std::uint64_t sequence) {
  if (all_zero(part(segment, at, segment.size()))) return {};
  if (was_durable(segment, salt, at, sequence)) {
    return damaged_tail(
        "a frame that had been durable is damaged: what follows it shows that it was durable");
  }
  const std::uint64_t sector_end = align_up(at + 1, kSectorBytes);
  const auto header = header_at(segment, salt, at);
  if (header && header->kind != FrameKind::mark) {
    return judge_body(segment, salt, at, sequence, *header);
  }
  // The rest of the header's sector arrives with it: if the header did not arrive, nothing did.
  if (!untouched(segment, salt, at, sector_end)) {
    return damaged_tail("the header of a frame is damaged");
  }
  const std::uint64_t behind =
      is_mark(segment, salt, sector_end) ? sector_end + kFrameHeaderBytes : sector_end;
  if (all_zero(part(segment, behind, segment.size()))) return {};
  return {TailKind::torn, {}};
}

}  // namespace leasehold::storage
