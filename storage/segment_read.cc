// Reading, on any thread: a plan records where entries stand, and is then read without a lock,
// since stored entries are never overwritten.
#include <leasehold/storage/segment_store.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::storage {
namespace {

/// How much one read covers, when many small runs are adjacent.
constexpr std::uint64_t kReadBytes = std::uint64_t{256} << 10U;
}  // namespace

void Collector::add(raft::Entry entry) {
  bytes_ += entry.payload.size();
  full_ = !entries_.empty() && bytes_ > request_.bytes_max;
  if (full_) return;
  entries_.push_back(std::move(entry));
  next_ = next_.next();
}

Result<std::vector<raft::Entry>> Collector::finish() {
  if (!entries_.empty()) return std::move(entries_);
  return Error{
      ErrorCode::not_found,
      fmt::format("entry {} is not in the log: it was cut or truncated", request_.first.value())};
}

SegmentExtent SegmentStore::extent_of(const Segment& segment) {
  return {segment.file, segment.number, segment.salt, segment.end, segment.group};
}

ReadPlan SegmentStore::plan(raft::GroupId group, raft::Index first, raft::Index last,
                            std::size_t bytes_max) {
  ReadPlan plan;
  plan.group = group;
  std::uint64_t bytes = 0;
  const Lock lock(mutex_);
  const auto found = groups_.find(group.value());
  if (found == groups_.end() || first <= found->second.base()) return plan;
  const std::vector<Part>& parts = found->second.parts();
  for (std::size_t i = found->second.find(first); i < parts.size(); ++i) {
    if (parts[i].first > last || bytes > bytes_max) break;
    Segment& segment = segments_[parts[i].segment - segments_.front().number];
    ReadPlan::Part part;
    part.extent = extent_of(segment);
    part.first = std::max(first, parts[i].first);
    part.last = std::min(last, parts[i].last);
    if (segment.positions) {
      segment.used = ++uses_;
      const auto& runs = (*segment.positions)[group.value()].runs();
      part.runs.emplace();
      const auto from = std::partition_point(
          runs.begin(), runs.end(), [&part](const Run& run) { return run.last() < part.first; });
      for (auto run = from; run != runs.end(); ++run) {
        if (run->first > part.last || bytes > bytes_max) break;
        part.runs->push_back(*run);
        bytes += run->bytes - run->count * kEntryHeadBytes;
      }
    }
    plan.parts.push_back(std::move(part));
  }
  return plan;
}

Result<void> SegmentStore::read(ReadPlan& plan, Collector& out) {
  for (ReadPlan::Part& part : plan.parts) {
    if (out.full()) break;
    auto done = part.runs ? Result<void>() : find_runs(plan.group, part);
    if (done) done = read_runs(part, out);
    if (!done) return in_folder(path(), done.error());
    // A part that was planned up to the bytes asked for ends early: what follows has a gap.
    if (!out.full() && out.next() <= part.last) break;
  }
  return {};
}

Result<void> SegmentStore::find_runs(raft::GroupId group, ReadPlan::Part& part) {
  auto read = read_positions(part.extent);
  if (!read) return read.error();
  SegmentPositions positions = std::move(read).value();
  keep_positions(part.extent.number, positions);
  const Positions& own = positions[group.value()];
  const auto& runs = own.runs();
  part.runs.emplace(runs.begin() + static_cast<std::ptrdiff_t>(own.find(part.first)), runs.end());
  return {};
}

void SegmentStore::keep_positions(std::uint64_t number, const SegmentPositions& positions) {
  const Lock lock(mutex_);
  if (number < segments_.front().number) return;  // the log was cut since
  Segment& segment = segments_[number - segments_.front().number];
  if (segment.positions) return;
  segment.positions = positions;
  segment.used = ++uses_;
  bound_positions();
}

void SegmentStore::bound_positions() {
  for (;;) {
    std::size_t kept = 0;
    Segment* oldest = nullptr;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      Segment& segment = segments_[i];
      if (i == current_ || !segment.positions) continue;
      ++kept;
      if (oldest == nullptr || segment.used < oldest->used) oldest = &segment;
    }
    if (kept <= kPositionsMax) return;
    oldest->positions.reset();
  }
}

Result<void> SegmentStore::read_runs(const ReadPlan::Part& part, Collector& out) {
  const std::vector<Run>& runs = *part.runs;
  std::string bytes;
  for (std::size_t at = 0; at < runs.size() && !out.full() && runs[at].first <= part.last;) {
    const std::uint64_t from = runs[at].offset;
    std::size_t end = at + 1;
    // Copies may stand behind entries that follow them.
    while (end < runs.size() && runs[end].offset >= runs[end - 1].offset &&
           runs[end].offset + runs[end].bytes - from <= kReadBytes) {
      ++end;
    }
    bytes.resize(runs[end - 1].offset + runs[end - 1].bytes - from);
    if (auto done = part.extent.file->read(from, bytes.data(), bytes.size()); !done) return done;
    for (; at < end; ++at) {
      std::string_view rest =
          std::string_view(bytes).substr(runs[at].offset - from, runs[at].bytes);
      for (std::uint64_t i = 0; i < runs[at].count; ++i) {
        const raft::Index index(runs[at].first.value() + i);
        const auto entry = take_entry(rest);
        if (!entry || entry.value().id.index != index) {
          return Error{
              ErrorCode::corrupted,
              fmt::format("the file {}, byte {}: entry {} was damaged since it was written",
                          segment_name(part.extent.number), runs[at].offset, index.value())};
        }
        if (index < out.next() || index > part.last || out.full()) continue;
        out.add({entry.value().id, entry.value().kind, Bytes(entry.value().payload)});
      }
    }
  }
  return {};
}

}  // namespace leasehold::storage
