#include <leasehold/base/assert.h>
#include <leasehold/storage/segment_load.h>
#include <leasehold/storage/segment_scan.h>
#include <leasehold/wire/crc32c.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace leasehold::storage {
namespace {

constexpr std::string_view kSegmentSuffix = ".seg";
constexpr std::size_t kNameDigits = 16;

Error corrupted(const std::string& message) {
  return {ErrorCode::corrupted, message};
}

Error of_group(raft::GroupId id, const Error& error) {
  return {error.code, fmt::format("group {}: {}", id.value(), error.message)};
}

/// The number in a segment's name; none if it is not the name of a segment.
std::optional<std::uint64_t> segment_number(const std::string& name) {
  std::uint64_t number = 0;
  for (const char c : name.substr(0, kNameDigits)) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  if (name != segment_name(number)) return std::nullopt;
  return number;
}

/// Takes frames off a segment until there is no good one.
class FrameWalk {
 public:
  FrameWalk(std::string_view segment, std::uint64_t salt) : segment_(segment), salt_(salt) {}

  std::uint64_t at() const { return at_; }
  const FrameHeader& header() const { return header_; }
  std::string_view body() const {
    return segment_.substr(at_ + kFrameHeaderBytes, header_.body_bytes);
  }
  std::string_view frame() const { return segment_.substr(at_, header_.frame_bytes()); }

  /// Whether a good frame stands at at(). Errors: unsupported_format.
  Result<bool> look() {
    if (at_ + kFrameHeaderBytes > segment_.size()) return false;
    const HeaderRead read = decode_header(segment_.substr(at_, kFrameHeaderBytes));
    if (read.other_format) return unsupported_format("a frame", *read.other_format);
    if (!read.header || read.header->salt != salt_) return false;
    header_ = *read.header;
    if (header_.kind != FrameKind::batch) return false;
    if (header_.body_bytes > segment_.size() - at_ - kFrameHeaderBytes) return false;
    return wire::crc32c(body()) == header_.body_check;
  }
  void skip() { at_ += header_.frame_bytes(); }

 private:
  std::string_view segment_;
  std::uint64_t salt_;
  std::uint64_t at_ = kFramesBegin;
  FrameHeader header_;
};

/// Takes the sections of one frame after another off their bodies.
class SectionWalk {
 public:
  SectionWalk(std::string_view body, std::uint8_t format, raft::GroupId group)
      : body_(body), rest_(body), format_(format), group_(group) {}

  bool at_end() const { return rest_.empty(); }
  Result<Section> next() { return take_section(rest_, format_, group_); }
  /// The next entry of the section, and where it stood in the body.
  Result<EntryView> entry() {
    offset_ = body_.size() - rest_.size();
    return take_entry(rest_);
  }
  std::uint64_t offset() const { return offset_; }
  std::string_view entry_bytes() const {
    return body_.substr(offset_, body_.size() - rest_.size() - offset_);
  }
  /// A frame of the log of one group has one section.
  bool may_go_on() const { return format_ == kSharedLogFormat; }

 private:
  std::string_view body_;
  std::string_view rest_;
  std::uint8_t format_;
  raft::GroupId group_;
  std::uint64_t offset_ = 0;
};

class Loader {
 public:
  Loader(const FolderMark& mark, std::optional<raft::GroupId> group)
      : mark_(mark), group_(group), previous_salt_(mark.predecessor.salt) {
    log_.sequence = mark.predecessor.sequence;
  }

  /// Takes the next segment, in the order of their numbers.
  Result<void> add(std::uint64_t number, std::shared_ptr<DiskFile> file);
  /// When all are there.
  Result<LoadedLog> finish();

 private:
  Result<void> read_head(Segment& segment) const;
  Result<void> take_frames(std::string_view bytes);
  Result<void> take_frame(const FrameHeader& header, std::string_view body,
                          std::uint64_t body_offset);
  Result<void> take_group(const Section& section, SectionWalk& walk, std::uint64_t body_offset);
  Result<void> take_tail(std::string_view bytes);
  GroupLoader& group(raft::GroupId id);
  Error in_segment(const Error& error, std::uint64_t at) const {
    return {error.code, fmt::format("the file {}, byte {}: {}",
                                    segment_name(log_.segments.back().number), at, error.message)};
  }

  const FolderMark& mark_;
  const std::optional<raft::GroupId> group_;
  LoadedLog log_;
  std::map<raft::GroupId, GroupLoader> groups_;
  /// The replica has gone since the beginning of what is read.
  std::set<raft::GroupId> removed_;
  std::uint64_t previous_salt_;
  bool torn_ = false;
  std::string last_frame_;
  std::uint64_t last_frame_at_ = 0;
};

Result<void> Loader::add(std::uint64_t number, std::shared_ptr<DiskFile> file) {
  Segment segment;
  segment.number = number;
  segment.file = std::move(file);
  segment.first_sequence = log_.sequence + 1;
  log_.segments.push_back(std::move(segment));
  Segment& added = log_.segments.back();
  if (auto head = read_head(added); !head) return in_segment(head.error(), 0);
  previous_salt_ = added.salt;

  std::string bytes(added.file->size(), '\0');
  if (auto read = added.file->read(0, bytes.data(), bytes.size()); !read) return read;
  if (auto taken = take_frames(bytes); !taken) return taken;
  return take_tail(bytes);
}

Result<void> Loader::read_head(Segment& segment) const {
  if (segment.file->size() < kFramesBegin) return corrupted("it was cut short");
  std::string bytes(kFramesBegin, '\0');
  if (auto read = segment.file->read(0, bytes.data(), bytes.size()); !read) return read;
  const HeaderRead header = decode_header(bytes);
  if (header.other_format) return unsupported_format("it", *header.other_format);
  if (!header.header || header.header->kind != FrameKind::head ||
      header.header->frame_bytes() > bytes.size()) {
    return corrupted("its head is damaged");
  }
  const std::string_view body =
      std::string_view(bytes).substr(kFrameHeaderBytes, header.header->body_bytes);
  if (wire::crc32c(body) != header.header->body_check) return corrupted("its head is damaged");
  const auto head = decode_head(body);
  if (!head) return head.error();
  HeadBody expected;
  expected.segment = segment.number;
  expected.segment_bytes = segment.file->size();
  expected.previous_salt = previous_salt_;
  expected.cluster_id = mark_.cluster_id;
  expected.id = mark_.id;
  expected.uuid = mark_.uuid;
  if (header.header->format != kSharedLogFormat) {
    expected.group = group_.value_or(head.value().group);
  }
  if (head.value().segment_bytes != expected.segment_bytes) {
    return corrupted(fmt::format("it has {} bytes instead of {}", expected.segment_bytes,
                                 head.value().segment_bytes));
  }
  if (!(head.value() == expected)) return corrupted("it belongs to another log or another place");
  segment.salt = header.header->salt;
  segment.group = head.value().group;
  return {};
}

Result<void> Loader::take_frames(std::string_view bytes) {
  Segment& segment = log_.segments.back();
  FrameWalk walk(bytes, segment.salt);
  for (;;) {
    const auto good = walk.look();
    if (!good) return in_segment(good.error(), walk.at());
    if (!good.value()) break;
    if (torn_ || walk.header().sequence != log_.sequence + 1) {
      return in_segment(corrupted(fmt::format("frame {} stands where frame {} has to be",
                                              walk.header().sequence, log_.sequence + 1)),
                        walk.at());
    }
    if (walk.at() == kFramesBegin) {
      // Only the newest segment with frames keeps its positions in memory.
      log_.segments[log_.current].positions.reset();
      log_.current = log_.segments.size() - 1;
      segment.positions.emplace();
    }
    if (auto taken = take_frame(walk.header(), walk.body(), walk.at() + kFrameHeaderBytes);
        !taken) {
      return in_segment(taken.error(), walk.at());
    }
    log_.sequence = walk.header().sequence;
    last_frame_.assign(walk.frame());
    last_frame_at_ = walk.at();
    walk.skip();
    segment.end = walk.at();
  }
  return {};
}

Result<void> Loader::take_frame(const FrameHeader& header, std::string_view body,
                                std::uint64_t body_offset) {
  SectionWalk walk(body, header.format, log_.segments.back().group);
  do {
    const auto section = walk.next();
    if (!section) return section.error();
    if (section.value().process) {
      log_.process = *section.value().process;
      log_.process_segment = log_.segments.back().number;
    } else if (section.value().batch.removed) {
      groups_.erase(section.value().group);
      removed_.insert(section.value().group);
      log_.segments.back().positions->erase(section.value().group.value());
    } else if (auto taken = take_group(section.value(), walk, body_offset); !taken) {
      return taken;
    }
  } while (walk.may_go_on() && !walk.at_end());
  return walk.at_end() ? Result<void>() : corrupted("the batch does not hold what it says");
}

GroupLoader& Loader::group(raft::GroupId id) {
  const bool floating = mark_.predecessor.sequence != 0 && removed_.count(id) == 0;
  return groups_.try_emplace(id, floating).first->second;
}

Result<void> Loader::take_group(const Section& section, SectionWalk& walk,
                                std::uint64_t body_offset) {
  Segment& segment = log_.segments.back();
  GroupLoader& loader = group(section.group);
  if (auto begun = loader.begin(section.batch, segment.number); !begun) return begun;
  Positions& positions = (*segment.positions)[section.group.value()];
  if (!section.batch.moved)
    positions.cut(section.batch.reset ? raft::Index(0) : section.batch.first);
  for (std::uint32_t i = 0; i < section.batch.count; ++i) {
    const auto entry = walk.entry();
    if (!entry) return entry.error();
    if (auto added = loader.add(entry.value()); !added) return added;
    const std::uint64_t offset = body_offset + walk.offset();
    positions.put(entry.value().id.index, offset, walk.entry_bytes().size());
  }
  return loader.end();
}

Result<void> Loader::take_tail(std::string_view bytes) {
  const Segment& segment = log_.segments.back();
  const Tail tail = judge_tail(bytes, segment.salt, segment.end, log_.sequence + 1);
  if (tail.kind == TailKind::clean) return {};
  if (tail.kind == TailKind::damaged) return in_segment(corrupted(tail.why), segment.end);
  if (torn_ || mark_.closed) {
    return in_segment(corrupted("a torn frame where none can be"), segment.end);
  }
  torn_ = true;
  const std::size_t end = bytes.find_last_not_of('\0') + 1;
  LEASEHOLD_ASSERT(end > segment.end);
  log_.repairs.push_back(
      {log_.segments.size() - 1, segment.end, std::string(end - segment.end, '\0')});
  return {};
}

Result<LoadedLog> Loader::finish() {
  // What goes in front leaves something behind it.
  if (mark_.predecessor.sequence != 0 && log_.sequence == mark_.predecessor.sequence) {
    return corrupted("no frame says where the log begins");
  }
  for (auto& [id, loader] : groups_) {
    auto group = loader.finish(log_.holders);
    if (!group) return group_ ? group.error() : of_group(id, group.error());
    log_.groups.emplace(id, std::move(group).value());
  }
  if (log_.process_segment != 0) log_.holders.add(log_.process_segment, 0);
  if (!log_.segments.empty()) {
    Segment& current = log_.segments[log_.current];
    const ClosedAt end{current.number, current.end, log_.sequence};
    if (mark_.closed && !(*mark_.closed == end)) {
      return corrupted(fmt::format("the log was closed behind frame {}, but ends behind frame {}",
                                   mark_.closed->sequence, end.sequence));
    }
    if (!current.positions) current.positions.emplace();
  }
  if (!mark_.closed && !last_frame_.empty()) {
    log_.repairs.push_back({log_.current, last_frame_at_, std::move(last_frame_)});
  }
  return std::move(log_);
}

}  // namespace

std::string segment_name(std::uint64_t number) {
  return fmt::format("{:0{}}{}", number, kNameDigits, kSegmentSuffix);
}

Result<LoadedLog> load_segments(const Disk& disk, const FolderMark& mark,
                                std::optional<raft::GroupId> group) {
  const auto names = disk.list();
  if (!names) return names.error();
  std::uint64_t next = mark.first_segment;
  std::vector<std::string> leftovers;
  Loader loader(mark, group);
  for (const std::string& name : names.value()) {
    if (name == kMarkName) continue;
    // The rest of a file that create() did not finish.
    if (name.size() > kNewSuffix.size() &&
        name.compare(name.size() - kNewSuffix.size(), std::string::npos, kNewSuffix) == 0) {
      continue;
    }
    const auto number = segment_number(name);
    if (!number) {
      return corrupted(fmt::format("it holds the file {}, which is not the log's", name));
    }
    if (*number < mark.first_segment) {
      leftovers.push_back(name);
      continue;
    }
    // One more than the mark knows: a crash came before the mark was written.
    if (*number != next || *number > mark.last_segment + 1) {
      if (*number > next && next <= mark.last_segment) break;
      return corrupted(
          fmt::format("it holds the file {}, which does not belong to this log", name));
    }
    auto file = disk.open(name);
    if (!file) return file.error();
    if (auto added = loader.add(*number, std::move(file).value()); !added) return added.error();
    ++next;
  }
  if (next <= mark.last_segment) {
    return corrupted(fmt::format("the file {} is missing", segment_name(next)));
  }
  auto log = loader.finish();
  if (log) log.value().leftovers = std::move(leftovers);
  return log;
}

Result<void> visit_segment(const SegmentExtent& extent, SegmentVisitor& visitor) {
  std::string bytes(extent.end, '\0');
  if (auto read = extent.file->read(0, bytes.data(), bytes.size()); !read) return read.error();
  FrameWalk frames(bytes, extent.salt);
  const auto damaged = [&] {
    return corrupted(
        fmt::format("the file {}, byte {}: a frame was damaged since the log was opened",
                    segment_name(extent.number), frames.at()));
  };
  while (frames.at() < extent.end) {
    const auto good = frames.look();
    if (!good || !good.value()) return damaged();
    SectionWalk walk(frames.body(), frames.header().format, extent.group);
    while (!walk.at_end()) {
      const auto section = walk.next();
      if (!section) return damaged();
      if (auto done = visitor.section(section.value()); !done) return done;
      for (std::uint32_t i = 0; i < section.value().batch.count; ++i) {
        const auto entry = walk.entry();
        if (!entry) return damaged();
        const std::uint64_t offset = frames.at() + kFrameHeaderBytes + walk.offset();
        if (auto done = visitor.entry(entry.value(), offset, walk.entry_bytes()); !done)
          return done;
      }
      if (auto done = visitor.section_ends(); !done) return done;
    }
    frames.skip();
  }
  return {};
}

Result<SegmentPositions> read_positions(const SegmentExtent& extent) {
  class Collect final : public SegmentVisitor {
   public:
    Result<void> section(const Section& section) override {
      if (section.process) return {};
      positions_ = &found[section.group.value()];
      const BatchBody& batch = section.batch;
      if (batch.moved) return {};
      positions_->cut(batch.reset || batch.removed ? raft::Index(0) : batch.first);
      return {};
    }
    Result<void> entry(const EntryView& entry, std::uint64_t offset,
                       std::string_view bytes) override {
      positions_->put(entry.id.index, offset, bytes.size());
      return {};
    }
    SegmentPositions found;

   private:
    Positions* positions_ = nullptr;
  };
  Collect collect;
  if (auto done = visit_segment(extent, collect); !done) return done.error();
  return std::move(collect.found);
}

}  // namespace leasehold::storage
