#include <leasehold/base/assert.h>
#include <leasehold/storage/segment_load.h>
#include <leasehold/storage/segment_scan.h>
#include <leasehold/wire/crc32c.h>

#include <algorithm>
#include <utility>

namespace leasehold::storage {
namespace {

constexpr std::string_view kSegmentSuffix = ".seg";
constexpr std::size_t kNameDigits = 16;

Error corrupted(const std::string& message) {
  return {ErrorCode::corrupted, message};
}

/// The number in a segment's name; none if it is no such name.
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
    if (header_.kind != FrameKind::batch && header_.kind != FrameKind::state) return false;
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

class Loader {
 public:
  Loader(const FolderMark& mark, raft::GroupId group) : mark_(mark), group_(group) {}

  /// Takes the next segment, in the order of their numbers.
  Result<void> add(std::uint64_t number, std::shared_ptr<DiskFile> file);
  /// When all are there.
  Result<LoadedLog> finish();

 private:
  Result<void> read_head(Segment& segment) const;
  Result<void> take_frames(std::string_view bytes);
  Result<void> take_state_frame(std::string_view body);
  Result<void> take_batch(std::string_view body, std::uint64_t body_offset);
  Result<void> take_tail(std::string_view bytes);
  Result<void> repair_after_crash();
  void cut(raft::Index from);
  Error in_segment(const Error& error, std::uint64_t at) const {
    return {error.code, "the file " + segment_name(log_.segments.back().number) + ", byte " +
                            std::to_string(at) + ": " + error.message};
  }

  const FolderMark& mark_;
  const raft::GroupId group_;
  LoadedLog log_;
  std::uint64_t previous_salt_ = 0;
  bool torn_ = false;
  std::string last_frame_;
  std::uint64_t last_frame_at_ = 0;
};

Result<void> Loader::add(std::uint64_t number, std::shared_ptr<DiskFile> file) {
  Segment segment;
  segment.number = number;
  segment.file = std::move(file);
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
  expected.previous_salt =
      segment.number == mark_.first_segment ? head.value().previous_salt : previous_salt_;
  expected.cluster_id = mark_.cluster_id;
  expected.id = mark_.id;
  expected.uuid = mark_.uuid;
  expected.group = group_;
  if (head.value().segment_bytes != expected.segment_bytes) {
    return corrupted("it has " + std::to_string(expected.segment_bytes) + " bytes instead of " +
                     std::to_string(head.value().segment_bytes));
  }
  if (!(head.value() == expected)) return corrupted("it belongs to another log or another place");
  segment.salt = header.header->salt;
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
      return in_segment(
          corrupted("frame " + std::to_string(walk.header().sequence) + " stands where frame " +
                    std::to_string(log_.sequence + 1) + " has to be"),
          walk.at());
    }
    if (walk.at() == kFramesBegin) {
      // Only the newest segment with frames keeps its positions in memory.
      log_.segments[log_.current].positions.reset();
      log_.current = log_.segments.size() - 1;
      segment.positions.emplace();
    }
    auto taken = walk.header().kind == FrameKind::batch
                     ? take_batch(walk.body(), walk.at() + kFrameHeaderBytes)
                     : take_state_frame(walk.body());
    if (!taken) return in_segment(taken.error(), walk.at());
    log_.sequence = walk.header().sequence;
    last_frame_.assign(walk.frame());
    last_frame_at_ = walk.at();
    walk.skip();
    segment.end = walk.at();
  }
  return {};
}

Result<void> Loader::take_state_frame(std::string_view body) {
  auto state = decode_state(body);
  if (!state) return state.error();
  // Today the log begins where it began: a base is set once, in an empty log.
  if (state.value().state.last != log_.shape.last()) {
    return corrupted("the state does not fit the log before it");
  }
  if (state.value().base && !log_.state.base) {
    log_.shape = Shape(state.value().base->base, {}, state.value().base->base);
  }
  log_.state = std::move(state).value();
  return {};
}

Result<void> Loader::take_batch(std::string_view body, std::uint64_t body_offset) {
  const auto decoded = decode_batch(body);
  if (!decoded) return decoded.error();
  const BatchBody& batch = decoded.value();
  if (!log_.state.base) return corrupted("entries stand before the group was formed");
  if (batch.first <= log_.shape.base().index ||
      log_.shape.term_at(batch.first.prev()) != batch.previous_term) {
    return corrupted("entry " + std::to_string(batch.first.value()) +
                     " does not follow from the one before");
  }
  cut(batch.first);
  Segment& segment = log_.segments.back();
  std::string_view rest = body.substr(kBatchBodyBytes);
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    const std::uint64_t offset = body_offset + (body.size() - rest.size());
    const std::size_t before = rest.size();
    const auto entry = take_entry(rest);
    if (!entry) return entry.error();
    const raft::LogId id = entry.value().id;
    if (id.index != log_.shape.last().index.next() || id.term < log_.shape.last().term ||
        id.term == raft::Term(0)) {
      return corrupted("entry " + std::to_string(id.index.value()) +
                       " does not follow from the one before");
    }
    if (entry.value().kind == raft::EntryKind::membership) {
      auto membership = raft::decode_membership(entry.value().payload);
      if (!membership) {
        return Error{
            membership.error().code == ErrorCode::unsupported_format ? ErrorCode::unsupported_format
                                                                     : ErrorCode::corrupted,
            "entry " + std::to_string(id.index.value()) + ": " + membership.error().message};
      }
      log_.memberships.push_back({id.index, std::move(membership).value()});
    }
    log_.shape.append(id);
    segment.add(id.index, offset, before - rest.size());
  }
  if (!rest.empty() || batch.state.last != log_.shape.last()) {
    return corrupted("the batch does not hold what it says");
  }
  log_.state.state = batch.state;
  return {};
}

void Loader::cut(raft::Index from) {
  log_.shape.truncate(from);
  while (!log_.memberships.empty() && log_.memberships.back().index >= from) {
    log_.memberships.pop_back();
  }
  for (auto segment = log_.segments.rbegin(); segment != log_.segments.rend(); ++segment) {
    segment->cut(from);
    if (segment->has_entries()) break;
  }
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
  if (!log_.segments.empty()) {
    Segment& current = log_.segments[log_.current];
    const ClosedAt end{current.number, current.end, log_.sequence};
    if (mark_.closed && !(*mark_.closed == end)) {
      return corrupted("the log was closed behind frame " + std::to_string(mark_.closed->sequence) +
                       ", but ends behind frame " + std::to_string(end.sequence));
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
  const std::string digits = std::to_string(number);
  return std::string(kNameDigits - std::min(kNameDigits, digits.size()), '0') + digits +
         std::string(kSegmentSuffix);
}

// Shape.

std::optional<raft::Term> Shape::term_at(raft::Index index) const {
  if (index == base_.index) return base_.term;
  if (index < base_.index || index > last_.index) return std::nullopt;
  const auto after = std::partition_point(
      runs_.begin(), runs_.end(), [index](const raft::TermRun& run) { return run.first <= index; });
  LEASEHOLD_ASSERT(after != runs_.begin());
  return std::prev(after)->term;
}

void Shape::truncate(raft::Index from) {
  LEASEHOLD_ASSERT(from > base_.index);
  LEASEHOLD_ASSERT(from <= last_.index.next());
  while (!runs_.empty() && runs_.back().first >= from) runs_.pop_back();
  last_ = {runs_.empty() ? base_.term : runs_.back().term, from.prev()};
}

void Shape::append(raft::LogId id) {
  LEASEHOLD_ASSERT(id.index == last_.index.next());
  LEASEHOLD_ASSERT(id.term >= last_.term);
  LEASEHOLD_ASSERT(id.term > raft::Term(0));
  // A run of the base's own term begins anew: the runs cover what the log holds.
  if (runs_.empty() || runs_.back().term != id.term) runs_.push_back({id.term, id.index});
  last_ = id;
}

// Segment.

void Segment::cut(raft::Index from) {
  if (from <= last) last = from.prev();
  if (positions) positions->cut(from);
}

void Segment::add(raft::Index index, std::uint64_t offset, std::uint64_t bytes) {
  if (!has_entries()) first = index;
  last = index;
  positions->add(index, offset, bytes);
}

Result<LoadedLog> load_segments(const Disk& disk, const FolderMark& mark, raft::GroupId group) {
  const auto names = disk.list();
  if (!names) return names.error();
  std::uint64_t next = mark.first_segment;
  Loader loader(mark, group);
  for (const std::string& name : names.value()) {
    if (name == kMarkName) continue;
    // The remains of a file that was being made.
    if (name.size() > kNewSuffix.size() &&
        name.compare(name.size() - kNewSuffix.size(), std::string::npos, kNewSuffix) == 0) {
      continue;
    }
    const auto number = segment_number(name);
    if (!number) return corrupted("it holds the file " + name + ", which is not the log's");
    // One more than the mark knows: a crash came before the mark was written.
    if (*number != next || *number > mark.last_segment + 1) {
      if (*number > next && next <= mark.last_segment) break;
      return corrupted("it holds the file " + name + ", which does not belong to this log");
    }
    auto file = disk.open(name);
    if (!file) return file.error();
    if (auto added = loader.add(*number, std::move(file).value()); !added) return added.error();
    ++next;
  }
  if (next <= mark.last_segment) {
    return corrupted("the file " + segment_name(next) + " is missing");
  }
  return loader.finish();
}

Result<Positions> read_positions(const DiskFile& file, std::uint64_t number, std::uint64_t salt,
                                 std::uint64_t end) {
  std::string bytes(end, '\0');
  if (auto read = file.read(0, bytes.data(), bytes.size()); !read) return read.error();
  Positions positions;
  FrameWalk walk(bytes, salt);
  const auto damaged = [&] {
    return corrupted("the file " + segment_name(number) + ", byte " + std::to_string(walk.at()) +
                     ": a frame was damaged since the log was opened");
  };
  while (walk.at() < end) {
    const auto good = walk.look();
    if (!good || !good.value()) return damaged();
    if (walk.header().kind == FrameKind::batch) {
      const auto batch = decode_batch(walk.body());
      if (!batch) return damaged();
      positions.cut(batch.value().first);
      std::string_view rest = walk.body().substr(kBatchBodyBytes);
      for (std::uint32_t i = 0; i < batch.value().count; ++i) {
        const std::uint64_t offset =
            walk.at() + kFrameHeaderBytes + (walk.body().size() - rest.size());
        const std::size_t before = rest.size();
        const auto entry = take_entry(rest);
        if (!entry) return damaged();
        positions.add(entry.value().id.index, offset, before - rest.size());
      }
    }
    walk.skip();
  }
  return positions;
}

}  // namespace leasehold::storage
