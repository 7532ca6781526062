// Bytes of a log's folder: frames, the mark, segments as they come, and segments of frames with
// good checks. What is accepted holds together, and is accepted again as it is after its repair.
#include <leasehold/base/assert.h>
#include <leasehold/storage/folder.h>
#include <leasehold/storage/segment_load.h>
#include <leasehold/tests/fuzz/fuzz.h>
#include <leasehold/tests/fuzz/input.h>
#include <leasehold/wire/crc32c.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::fuzz {
namespace {

using namespace storage;

constexpr std::size_t kFileBytes = 4096;
/// The content of the segments 1 and 2.
using Image = std::array<std::string, 2>;
constexpr std::uint64_t kSalt = 0x1234;

/// Reads from an image, which outlives it: a disk that remembers nothing costs least.
class ImageFile final : public DiskFile {
 public:
  explicit ImageFile(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    LEASEHOLD_ASSERT(offset <= bytes_.size() && bytes <= bytes_.size() - offset);
    bytes_.copy(to, bytes, offset);
    return {};
  }
  Result<void> write(std::uint64_t, std::string_view) override { LEASEHOLD_UNREACHABLE(); }
  Result<void> sync() override { LEASEHOLD_UNREACHABLE(); }

 private:
  std::string_view bytes_;
};

class ImageDisk final : public Disk {
 public:
  explicit ImageDisk(const Image& image) : image_(image) {}

  const std::string& path() const override { return path_; }
  Result<std::vector<std::string>> list() const override { return names_; }
  Result<std::shared_ptr<DiskFile>> open(const std::string& name) const override {
    const std::string& bytes = image_[name == names_[0] ? 0 : 1];
    return std::shared_ptr<DiskFile>(std::make_shared<ImageFile>(bytes));
  }
  Result<std::optional<std::string>> load(const std::string&, std::size_t) const override {
    LEASEHOLD_UNREACHABLE();
  }
  Result<std::shared_ptr<DiskFile>> create(const std::string&, std::string_view,
                                           std::uint64_t) override {
    LEASEHOLD_UNREACHABLE();
  }
  Result<void> remove(const std::string&) override { LEASEHOLD_UNREACHABLE(); }
  Result<std::uint64_t> free_bytes() const override { LEASEHOLD_UNREACHABLE(); }

 private:
  static inline const std::string path_ = "/a disk in memory";
  static inline const std::vector<std::string> names_ = {segment_name(1), segment_name(2)};
  const Image& image_;
};

/// The entries before a log whose beginning was cut off.
constexpr Predecessor kGone{kSalt, 6};

/// The log of one group, or of many.
std::uint8_t format_of(bool shared) {
  return shared ? kSharedLogFormat : kLogFormat;
}

FolderMark the_mark(bool cut, bool shared) {
  FolderMark mark;
  mark.format = format_of(shared);
  if (cut) mark.predecessor = kGone;
  mark.cluster_id = 77;
  mark.id = raft::NodeId(1);
  mark.uuid = {1, 1};
  mark.last_segment = 2;
  return mark;
}

std::string empty_segment(std::uint64_t number, bool cut, bool shared) {
  HeadBody head;
  head.segment = number;
  head.segment_bytes = kFileBytes;
  head.previous_salt = number == 1 && !cut ? 0 : kSalt + number - 1;
  head.cluster_id = 77;
  head.id = raft::NodeId(1);
  head.uuid = {1, 1};
  FrameHeader header;
  header.format = format_of(shared);
  header.kind = FrameKind::head;
  header.salt = kSalt + number;
  std::string bytes = encode_frame(header, encode_head(head));
  bytes.resize(kFileBytes, '\0');
  return bytes;
}

/// Segments without frames.
Image empty_image(bool cut, bool shared) {
  return {empty_segment(1, cut, shared), empty_segment(2, cut, shared)};
}

const raft::Membership& the_members() {
  static const raft::Membership membership = [] {
    raft::Membership made;
    made.members = {{raft::NodeId(1), {1, 1}, "a:1"}};
    made.voters = {raft::NodeId(1)};
    return made;
  }();
  return membership;
}

Foundation foundation_at(raft::LogId base) {
  return {the_members(), raft::LogBase{base, the_members()}};
}

/// The frame that the group was formed with.
void put_formation(const FrameHeader& header, std::string& frame) {
  static const BatchBody body = [] {
    BatchBody made;
    made.first = raft::Index(1);
    made.foundation = foundation_at({});
    return made;
  }();
  BatchEncoder encoder(frame, header.format);
  encoder.begin(raft::GroupId(1), body);
  encoder.finish(header);
}

/// A section of a batch with good checks around what the input says.
void put_section(Input& in, bool shared, std::uint64_t& last, BatchEncoder& encoder) {
  BatchBody body;
  const std::uint8_t turn = in.byte();
  const raft::GroupId group(shared && turn % 64 == 5 ? 2 : 1);
  body.moved = shared && turn % 16 == 6;
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
    body.foundation.confirmed = the_members();
  }
  body.removed = shared && turn == 7 && count == 0 && !body.foundation.confirmed;
  encoder.begin(group, body);
  for (std::uint8_t i = 0; i < count; ++i) {
    raft::Entry entry;
    entry.id = {raft::Term(odd == 251 ? in.byte() : 1), raft::Index(body.first.value() + i)};
    entry.kind = odd % 16 == 2 ? raft::EntryKind::membership : raft::EntryKind::command;
    entry.payload = Bytes(in.bytes(in.byte()));
    encoder.add(entry);
  }
}

void put_batch(Input& in, const FrameHeader& header, std::uint64_t& last, std::string& frame) {
  const bool shared = header.format == kSharedLogFormat;
  BatchEncoder encoder(frame, header.format);
  const std::uint8_t sections = shared ? in.byte() % 3 : 0;
  for (std::uint8_t i = 0; i <= sections; ++i) put_section(in, shared, last, encoder);
  if (shared && in.byte() % 8 == 0) {
    encoder.add(ProcessRecord{{{raft::NodeId(2), {2, 2}, raft::Duration(in.byte())}}});
  }
  encoder.finish(header);
}

/// Frames with good checks, one behind the other, some of them not quite as they have to be.
Image image_of_frames(Input& in, bool cut, bool shared) {
  Image image = empty_image(cut, shared);
  std::string frame;
  frame.reserve(kFileBytes);
  std::uint64_t sequence = cut ? kGone.sequence : 0;
  std::uint64_t last = cut ? 9 : 0;
  for (std::uint64_t number = 1; number <= 2; ++number) {
    std::string& segment = image[number - 1];
    std::size_t at = kFramesBegin;
    while (!in.empty()) {
      const std::uint8_t what = in.byte();
      if (what % 16 == 15) break;  // on to the next segment
      FrameHeader header;
      header.format = format_of(shared);
      header.kind = what % 16 == 14 ? static_cast<FrameKind>(in.byte()) : FrameKind::batch;
      header.salt = kSalt + number;
      header.sequence = ++sequence + (what == 13 ? in.byte() : 0);
      header.synced_through = header.sequence - (what == 29 ? in.byte() : 1);
      if (sequence == 1) {
        put_formation(header, frame);
      } else if (header.kind == FrameKind::batch) {
        put_batch(in, header, last, frame);
      } else {
        frame = encode_frame(header, in.bytes(20));
      }
      if (at + frame.size() > segment.size()) break;
      segment.replace(at, frame.size(), frame);
      at += frame.size();
    }
  }
  // A few bytes of it damaged.
  for (int i = 0; i < 4 && !in.empty(); ++i) {
    const std::size_t at = in.byte() * 16U + in.byte() % 16U;
    image[in.byte() % 2][at] = static_cast<char>(in.byte());
  }
  return image;
}

/// The parts of a group's log follow one another, and stand where the segments say.
void check_group(const LoadedLog& log, raft::GroupId id, const LoadedGroup& group) {
  raft::Index next = group.shape.base().index.next();
  for (const Part& part : group.index.parts()) {
    LEASEHOLD_ASSERT(part.first == next && part.first <= part.last);
    next = part.last.next();
    const Segment& segment = log.segments.at(part.segment - log.segments.front().number);
    const auto positions =
        read_positions({segment.file, segment.number, segment.salt, segment.end, segment.group});
    LEASEHOLD_ASSERT(positions.ok());
    const auto& runs = positions.value().at(id.value()).runs();
    const auto covers = [&runs](raft::Index index) {
      return std::any_of(runs.begin(), runs.end(), [index](const Run& run) {
        return run.first <= index && index <= run.last();
      });
    };
    for (raft::Index at = part.first; at <= part.last; at = at.next()) LEASEHOLD_ASSERT(covers(at));
  }
  LEASEHOLD_ASSERT(next == group.shape.last().index.next());
  LEASEHOLD_ASSERT(group.index.state().last == group.shape.last());
}

/// Whatever was accepted holds together, and is accepted again as it is after its repair.
void load(Image image, bool cut, bool shared) {
  const ImageDisk disk(image);
  const auto group = shared ? std::nullopt : std::optional(raft::GroupId());
  const auto loaded = load_segments(disk, the_mark(cut, shared), group);
  if (!loaded) {
    LEASEHOLD_ASSERT(!loaded.error().message.empty());
    return;
  }
  const LoadedLog& log = loaded.value();
  LEASEHOLD_ASSERT(log.segments.size() == 2);
  for (const Segment& segment : log.segments) LEASEHOLD_ASSERT(segment.end <= kFileBytes);
  for (const auto& [id, found] : log.groups) check_group(log, id, found);
  for (const Repair& repair : log.repairs) {
    image[log.segments[repair.segment].number - 1].replace(repair.offset, repair.bytes.size(),
                                                           repair.bytes);
  }
  FolderMark closed = the_mark(cut, shared);
  closed.closed =
      ClosedAt{log.segments[log.current].number, log.segments[log.current].end, log.sequence};
  const auto again = load_segments(disk, closed, group);
  LEASEHOLD_ASSERT(again.ok());
  LEASEHOLD_ASSERT(again.value().groups.size() == log.groups.size());
  for (const auto& [id, found] : log.groups) {
    LEASEHOLD_ASSERT(again.value().groups.at(id).shape.last() == found.shape.last());
  }
}

/// The lines with a good check after them, and spaces up to the size of a mark.
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
  const bool shared = way / 8 % 2 == 1;
  switch (way % 4) {
    case 0: {
      if (in.rest().size() >= kFrameHeaderBytes) static_cast<void>(decode_header(in.rest()));
      static_cast<void>(decode_head(in.rest()).ok());
      std::string_view rest = in.rest();
      if (const auto section = take_section(rest, format_of(shared), raft::GroupId())) {
        std::string frame;
        BatchEncoder encoder(frame, format_of(shared));
        if (section.value().process) {
          encoder.add(*section.value().process);
        } else {
          encoder.begin(section.value().group, section.value().batch);
        }
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
      Image image = empty_image(cut, shared);
      const std::string_view bytes = in.bytes(kFileBytes - kFramesBegin);
      image[0].replace(kFramesBegin, bytes.size(), bytes);
      load(std::move(image), cut, shared);
      return;
    }
    default: load(image_of_frames(in, cut, shared), cut, shared); return;
  }
}

}  // namespace leasehold::fuzz
