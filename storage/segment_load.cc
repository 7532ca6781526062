#include <leasehold/base/assert.h>
#include <leasehold/storage/segment_load.h>
#include <leasehold/storage/segment_scan.h>
#include <leasehold/wire/crc32c.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace leasehold::storage {
namespace {

constexpr std::string_view kSegmentSuffix = ".seg";
constexpr std::size_t kNameDigits = 16;

Error corrupted(const std::string& message) {
  return {ErrorCode::corrupted, message};
}

Error stray(raft::Index index) {
  return corrupted(fmt::format("entry {} does not follow from the one before", index.value()));
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

class Loader {
 public:
  Loader(const FolderMark& mark, raft::GroupId group)
      : mark_(mark),
        group_(group),
        previous_salt_(mark.predecessor.salt),
        floating_(mark.predecessor.sequence != 0) {
    log_.sequence = mark.predecessor.sequence;
  }

  /// Takes the next segment, in the order of their numbers.
  Result<void> add(std::uint64_t number, std::shared_ptr<DiskFile> file);
  /// When all are there.
  Result<LoadedLog> finish();

 private:
  Result<void> read_head(Segment& segment) const;
  Result<void> take_frames(std::string_view bytes);
  Result<void> take_frame(std::string_view body, std::uint64_t body_offset);
  Result<void> lay(const Foundation& foundation);
  Result<void> find_place(const BatchBody& batch);
  Result<void> append(const EntryView& entry);
  Result<void> cut(const raft::LogBase& base);
  Result<void> take_tail(std::string_view bytes);
  void truncate(raft::Index from);
  void begin_at(raft::LogId base);
  Error in_segment(const Error& error, std::uint64_t at) const {
    return {error.code, fmt::format("the file {}, byte {}: {}",
                                    segment_name(log_.segments.back().number), at, error.message)};
  }

  const FolderMark& mark_;
  const raft::GroupId group_;
  LoadedLog log_;
  std::uint64_t previous_salt_;
  /// The beginning of the log is not known yet: its shape rests on what the frames say of the part
  /// that was cut off.
  bool floating_;
  bool begun_ = false;                       ///< a frame was taken
  std::deque<std::uint32_t> payload_sizes_;  ///< of the entries of the shape
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
  expected.group = group_;
  if (head.value().segment_bytes != expected.segment_bytes) {
    return corrupted(fmt::format("it has {} bytes instead of {}", expected.segment_bytes,
                                 head.value().segment_bytes));
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
    if (auto taken = take_frame(walk.body(), walk.at() + kFrameHeaderBytes); !taken) {
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

Result<void> Loader::take_frame(std::string_view body, std::uint64_t body_offset) {
  std::string_view rest = body;
  const auto taken = take_batch(rest);
  if (!taken) return taken.error();
  const BatchBody& batch = taken.value();
  if (batch.reset) {
    floating_ = false;
    begin_at(batch.foundation.base->id);
  }
  if (auto found = find_place(batch); !found) return found;
  truncate(batch.first);
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    const std::uint64_t offset = body_offset + (body.size() - rest.size());
    const std::size_t before = rest.size();
    const auto entry = take_entry(rest);
    if (!entry) return entry.error();
    if (auto appended = append(entry.value()); !appended) return appended;
    log_.segments.back().add(entry.value().id.index, offset, before - rest.size());
  }
  if (!rest.empty() || batch.state.last != log_.shape.last()) {
    return corrupted("the batch does not hold what it says");
  }
  log_.hard_state = batch.state.hard_state;
  return lay(batch.foundation);
}

/// Checks the entry before the batch, and finds where a floating log begins.
Result<void> Loader::find_place(const BatchBody& batch) {
  if (batch.first == raft::Index(0)) return stray(batch.first);
  const raft::LogId before{batch.previous_term, batch.first.prev()};
  const auto& base = log_.foundation.base;
  if (floating_ && (!base || before.index >= base->id.index) &&
      (!begun_ || before.index < log_.shape.base().index)) {
    begin_at(before);
    // The entries above the base that are gone were truncated.
    if (base && before == base->id) floating_ = false;
  }
  begun_ = true;
  if (!base && !floating_ && !batch.reset && batch.count > 0) {
    return corrupted("entries stand before the group was formed");
  }
  if (log_.shape.term_at(before.index) != before.term) return stray(batch.first);
  return {};
}

Result<void> Loader::append(const EntryView& entry) {
  const raft::LogId id = entry.id;
  if (id.index != log_.shape.last().index.next() || id.term < log_.shape.last().term ||
      id.term == raft::Term(0) || id.index == raft::Index(0)) {
    return stray(id.index);
  }
  if (entry.kind == raft::EntryKind::membership) {
    auto membership = raft::decode_membership(entry.payload);
    if (!membership) {
      return Error{membership.error().code == ErrorCode::unsupported_format
                       ? ErrorCode::unsupported_format
                       : ErrorCode::corrupted,
                   fmt::format("entry {}: {}", id.index.value(), membership.error().message)};
    }
    log_.memberships.push_back({id.index, std::move(membership).value()});
  }
  log_.shape.append(id);
  payload_sizes_.push_back(static_cast<std::uint32_t>(entry.payload.size()));
  return {};
}

Result<void> Loader::lay(const Foundation& foundation) {
  if (foundation.confirmed) {
    const auto& known = log_.foundation.confirmed;
    if (known && !(*known == *foundation.confirmed)) {
      return corrupted("it holds another confirmed set of members than the log before it");
    }
    log_.foundation.confirmed = foundation.confirmed;
  }
  return foundation.base ? cut(*foundation.base) : Result<void>();
}

Result<void> Loader::cut(const raft::LogBase& base) {
  const auto& known = log_.foundation.base;
  const raft::LogId begin = log_.shape.base();
  const bool back = known && base.id.index < known->id.index;
  // An earlier cut; a later one has removed more, and says where the log begins.
  const bool gone = floating_ && base.id.index < begin.index;
  if (back || (!gone && log_.shape.term_at(base.id.index) != base.id.term)) {
    return corrupted(fmt::format("the log cannot begin behind entry {}: it is not there",
                                 base.id.index.value()));
  }
  log_.foundation.base = base;
  log_.base_segment = log_.segments.back().number;
  if (gone) return {};
  floating_ = false;
  log_.shape.cut(base.id);
  const std::uint64_t count = base.id.index - begin.index;
  payload_sizes_.erase(payload_sizes_.begin(),
                       payload_sizes_.begin() + static_cast<std::ptrdiff_t>(count));
  auto& memberships = log_.memberships;
  const auto above =
      std::find_if(memberships.begin(), memberships.end(),
                   [&base](const raft::MembershipAt& at) { return at.index > base.id.index; });
  memberships.erase(memberships.begin(), above);
  for (Segment& segment : log_.segments) segment.cut(base.id.index);
  return {};
}

/// No entry taken so far belongs to the log.
void Loader::begin_at(raft::LogId base) {
  log_.shape = Shape(base, {}, base);
  log_.memberships.clear();
  payload_sizes_.clear();
  for (Segment& segment : log_.segments) segment.clear();
}

void Loader::truncate(raft::Index from) {
  log_.shape.truncate(from);
  payload_sizes_.resize(log_.shape.last().index - log_.shape.base().index);
  while (!log_.memberships.empty() && log_.memberships.back().index >= from) {
    log_.memberships.pop_back();
  }
  for (auto segment = log_.segments.rbegin(); segment != log_.segments.rend(); ++segment) {
    segment->truncate(from);
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
  if (floating_) return corrupted("no frame says where the log begins");
  log_.payload_bytes =
      std::accumulate(payload_sizes_.begin(), payload_sizes_.end(), std::uint64_t{0});
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
  // A run of the base's own term begins again at this entry: the runs cover what the log holds.
  if (runs_.empty() || runs_.back().term != id.term) runs_.push_back({id.term, id.index});
  last_ = id;
}

void Shape::cut(raft::LogId to) {
  LEASEHOLD_ASSERT(term_at(to.index) == to.term);
  const auto after =
      std::partition_point(runs_.begin(), runs_.end(),
                           [to](const raft::TermRun& run) { return run.first <= to.index.next(); });
  if (to.index == last_.index) {
    runs_.clear();
  } else {
    runs_.erase(runs_.begin(), std::prev(after));
    runs_.front().first = to.index.next();
  }
  base_ = to;
}

// Segment.

void Segment::truncate(raft::Index from) {
  if (from <= last) last = from.prev();
  if (positions) positions->cut(from);
}

void Segment::cut(raft::Index base) {
  if (base >= last) {
    clear();
  } else {
    first = std::max(first, base.next());
  }
}

void Segment::clear() {
  first = raft::Index(1);
  last = raft::Index(0);
  if (positions) positions->cut(raft::Index(0));
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

Result<Positions> read_positions(const DiskFile& file, std::uint64_t number, std::uint64_t salt,
                                 std::uint64_t end) {
  std::string bytes(end, '\0');
  if (auto read = file.read(0, bytes.data(), bytes.size()); !read) return read.error();
  Positions positions;
  FrameWalk walk(bytes, salt);
  const auto damaged = [&] {
    return corrupted(
        fmt::format("the file {}, byte {}: a frame was damaged since the log was opened",
                    segment_name(number), walk.at()));
  };
  while (walk.at() < end) {
    const auto good = walk.look();
    if (!good || !good.value()) return damaged();
    std::string_view rest = walk.body();
    const auto batch = take_batch(rest);
    if (!batch) return damaged();
    positions.cut(batch.value().reset ? raft::Index(0) : batch.value().first);
    for (std::uint32_t i = 0; i < batch.value().count; ++i) {
      const std::uint64_t offset =
          walk.at() + kFrameHeaderBytes + (walk.body().size() - rest.size());
      const std::size_t before = rest.size();
      const auto entry = take_entry(rest);
      if (!entry) return damaged();
      positions.add(entry.value().id.index, offset, before - rest.size());
    }
    walk.skip();
  }
  return positions;
}

}  // namespace leasehold::storage
