// Bytes of a log's folder: frames, the mark, segments as they come, and segments of frames with
// good checks. What is accepted holds together, and is accepted again as it is after its repair.
#include <leasehold/base/assert.h>
#include <leasehold/storage/folder.h>
#include <leasehold/storage/segment_load.h>
#include <leasehold/tests/fuzz/fuzz.h>
#include <leasehold/tests/fuzz/input.h>
#include <leasehold/tests/storage/crash_disk.h>
#include <leasehold/wire/crc32c.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

namespace leasehold::fuzz {
namespace {

using namespace storage;
using storage::testing::CrashDisk;
using storage::testing::DiskHistory;
using storage::testing::Image;

constexpr std::size_t kFileBytes = 4096;
constexpr std::uint64_t kSalt = 0x1234;

/// What stood before a log whose front was cut off.
constexpr Predecessor kGone{kSalt, 6};

FolderMark the_mark(bool cut) {
  FolderMark mark;
  if (cut) mark.predecessor = kGone;
  mark.cluster_id = 77;
  mark.id = raft::NodeId(1);
  mark.uuid = {1, 1};
  mark.last_segment = 2;
  return mark;
}

std::string empty_segment(std::uint64_t number, bool cut) {
  HeadBody head;
  head.segment = number;
  head.segment_bytes = kFileBytes;
  head.previous_salt = number == 1 && !cut ? 0 : kSalt + number - 1;
  head.cluster_id = 77;
  head.id = raft::NodeId(1);
  head.uuid = {1, 1};
  FrameHeader header;
  header.kind = FrameKind::head;
  header.salt = kSalt + number;
  std::string bytes = encode_frame(header, encode_head(head));
  bytes.resize(kFileBytes, '\0');
  return bytes;
}

Foundation foundation_at(raft::LogId base) {
  raft::Membership membership;
  membership.members = {{raft::NodeId(1), {1, 1}, "a:1"}};
  membership.voters = {raft::NodeId(1)};
  return {membership, raft::LogBase{base, membership}};
}

std::string formation() {
  BatchBody body;
  body.first = raft::Index(1);
  body.foundation = foundation_at({});
  std::string frame;
  const BatchEncoder encoder(frame, body);
  return frame.substr(kFrameHeaderBytes);
}

/// A batch with good checks around what the input says.
std::string batch_of(Input& in, std::uint64_t& last) {
  BatchBody body;
  const std::uint8_t turn = in.byte();
  body.reset = turn % 32 == 1;
  if (body.reset) last += turn / 32U;
  const std::uint8_t count = in.byte() % 4;
  // Mostly as it has to be, or nothing would ever be accepted.
  const std::uint8_t odd = in.byte();
  const std::uint64_t back = odd % 8 == 1 ? std::min<std::uint64_t>(odd / 8U, last) : 0;
  body.first = raft::Index(last + 1 - back + (odd == 255 ? 1 : 0));
  body.previous_term = raft::Term(body.first.value() == 1 ? 0 : 1);
  if (odd == 254) body.previous_term = raft::Term(in.byte());
  body.count = odd == 253 ? in.byte() : count;
  last = body.first.value() + count - 1;
  body.state.last = {raft::Term(last == 0 ? 0 : 1), raft::Index(last)};
  if (odd == 252) body.state.last.index = raft::Index(in.byte());
  body.state.hard_state.term = raft::Term(in.byte());
  if (body.reset) {
    body.foundation = foundation_at({body.previous_term, body.first.prev()});
  } else if (turn % 8 == 2) {
    const std::uint64_t base = last - std::min<std::uint64_t>(turn / 8U, last);
    body.foundation = foundation_at({raft::Term(base == 0 ? 0 : 1), raft::Index(base)});
  } else if (turn % 32 == 3) {
    body.foundation.confirmed = foundation_at({}).confirmed;
  }
  std::string frame;
  BatchEncoder encoder(frame, body);
  for (std::uint8_t i = 0; i < count; ++i) {
    raft::Entry entry;
    entry.id = {raft::Term(odd == 251 ? in.byte() : 1), raft::Index(body.first.value() + i)};
    entry.kind = odd % 16 == 2 ? raft::EntryKind::membership : raft::EntryKind::command;
    entry.payload = Bytes(in.bytes(in.byte()));
    encoder.add(entry);
  }
  return frame.substr(kFrameHeaderBytes);
}

/// Frames with good checks, one behind the other, some of them not quite as they have to be.
Image image_of_frames(Input& in, bool cut) {
  Image image;
  std::uint64_t sequence = cut ? kGone.sequence : 0;
  std::uint64_t last = cut ? 9 : 0;
  for (std::uint64_t number = 1; number <= 2; ++number) {
    std::string segment = empty_segment(number, cut);
    std::size_t at = kFramesBegin;
    while (!in.empty()) {
      const std::uint8_t what = in.byte();
      if (what % 16 == 15) break;  // on to the next segment
      FrameHeader header;
      header.kind = what % 16 == 14 ? static_cast<FrameKind>(in.byte()) : FrameKind::batch;
      header.salt = kSalt + number;
      header.sequence = ++sequence + (what == 13 ? in.byte() : 0);
      header.synced_through = header.sequence - (what == 29 ? in.byte() : 1);
      const std::string body = sequence == 1                     ? formation()
                               : header.kind == FrameKind::batch ? batch_of(in, last)
                                                                 : std::string(in.bytes(20));
      const std::string frame = encode_frame(header, body);
      if (at + frame.size() > segment.size()) break;
      segment.replace(at, frame.size(), frame);
      at += frame.size();
    }
    image[segment_name(number)] = std::move(segment);
  }
  // A few bytes of it damaged.
  for (int i = 0; i < 4 && !in.empty(); ++i) {
    const std::size_t at = in.byte() * 16U + in.byte() % 16U;
    image[segment_name(1 + in.byte() % 2)][at] = static_cast<char>(in.byte());
  }
  return image;
}

/// Whatever was accepted holds together, and is accepted again as it is after its repair.
void load(Image image, bool cut) {
  const auto history = std::make_shared<DiskHistory>(image);
  const CrashDisk disk(history);
  const auto loaded = load_segments(disk, the_mark(cut), raft::GroupId());
  if (!loaded) {
    LEASEHOLD_ASSERT(!loaded.error().message.empty());
    return;
  }
  const LoadedLog& log = loaded.value();
  LEASEHOLD_ASSERT(log.segments.size() == 2);
  raft::Index next = log.shape.base().index.next();
  for (const Segment& segment : log.segments) {
    LEASEHOLD_ASSERT(segment.end <= kFileBytes);
    const auto positions = read_positions(*segment.file, segment.number, segment.salt, segment.end);
    LEASEHOLD_ASSERT(positions.ok());
    if (!segment.has_entries()) continue;
    LEASEHOLD_ASSERT(segment.first == next);
    next = segment.last.next();
    Positions kept = positions.value();
    kept.cut(segment.last.next());
    LEASEHOLD_ASSERT(!kept.empty() && kept.runs().front().first <= segment.first &&
                     kept.runs().back().last() == segment.last);
  }
  LEASEHOLD_ASSERT(next == log.shape.last().index.next());
  for (const Repair& repair : log.repairs) {
    image.at(segment_name(log.segments[repair.segment].number))
        .replace(repair.offset, repair.bytes.size(), repair.bytes);
  }
  const CrashDisk repaired(std::make_shared<DiskHistory>(image));
  FolderMark closed = the_mark(cut);
  closed.closed =
      ClosedAt{log.segments[log.current].number, log.segments[log.current].end, log.sequence};
  const auto again = load_segments(repaired, closed, raft::GroupId());
  LEASEHOLD_ASSERT(again.ok());
  LEASEHOLD_ASSERT(again.value().shape.last() == log.shape.last());
}

/// With a good check behind it, and spaces up to its size.
std::string sealed_mark(std::string_view lines) {
  std::string bytes(lines.substr(0, kMarkBytes - 32));
  char check[32];
  std::snprintf(check, sizeof(check), "check %08x\n", wire::crc32c(bytes));
  bytes += check;
  bytes.resize(kMarkBytes - 1, ' ');
  return bytes + "\n";
}

}  // namespace

void take(std::string_view input) {
  Input in(input);
  const std::uint8_t way = in.byte();
  const bool cut = way / 4 % 2 == 1;
  switch (way % 4) {
    case 0: {
      if (in.rest().size() >= kFrameHeaderBytes) static_cast<void>(decode_header(in.rest()));
      static_cast<void>(decode_head(in.rest()).ok());
      std::string_view rest = in.rest();
      if (const auto batch = take_batch(rest)) {
        std::string frame;
        const BatchEncoder encoder(frame, batch.value());
        LEASEHOLD_ASSERT(frame.substr(kFrameHeaderBytes) + std::string(rest) == in.rest());
      }
      rest = in.rest();
      static_cast<void>(take_entry(rest).ok());
      return;
    }
    case 1: {
      const std::string mark_bytes = cut ? sealed_mark(in.rest()) : std::string(in.rest());
      const auto mark = decode_mark(mark_bytes);
      if (accepted(mark)) LEASEHOLD_ASSERT(encode_mark(mark.value()) == mark_bytes);
      return;
    }
    case 2: {
      Image image{{segment_name(1), empty_segment(1, cut)},
                  {segment_name(2), empty_segment(2, cut)}};
      const std::string_view bytes = in.bytes(kFileBytes - kFramesBegin);
      image[segment_name(1)].replace(kFramesBegin, bytes.size(), bytes);
      load(std::move(image), cut);
      return;
    }
    default: load(image_of_frames(in, cut), cut); return;
  }
}

}  // namespace leasehold::fuzz
