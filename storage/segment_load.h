// Reading the segments of a folder: what they hold, and the proof that nothing is missing.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/log.h>
#include <leasehold/storage/disk.h>
#include <leasehold/storage/folder.h>
#include <leasehold/storage/positions.h>
#include <leasehold/storage/segment_record.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::storage {

/// "0000000000000007.seg"
std::string segment_name(std::uint64_t number);
/// Where the first frame behind the head stands.
inline constexpr std::uint64_t kFramesBegin = kSectorBytes;

/// The end of a log, and the terms below it.
class Shape {
 public:
  Shape() = default;
  Shape(raft::LogId base, std::vector<raft::TermRun> runs, raft::LogId last)
      : base_(base), runs_(std::move(runs)), last_(last) {}

  raft::LogId base() const { return base_; }
  raft::LogId last() const { return last_; }
  const std::vector<raft::TermRun>& runs() const { return runs_; }
  /// None: below the base, or above the last entry.
  std::optional<raft::Term> term_at(raft::Index index) const;

  /// Removes `from` and everything above it. Asserts that it is above the base and at most one
  /// above the last entry.
  void truncate(raft::Index from);
  /// Asserts that the entry follows from the last one.
  void append(raft::LogId id);
  /// Removes everything up to `to`, which becomes the base. Asserts that it stands in the log.
  void cut(raft::LogId to);

 private:
  raft::LogId base_;
  std::vector<raft::TermRun> runs_;
  raft::LogId last_;
};

/// One file of the log.
struct Segment {
  std::uint64_t number = 0;
  std::uint64_t salt = 0;
  std::shared_ptr<DiskFile> file;
  /// Where the next frame goes; kFramesBegin in a segment without frames.
  std::uint64_t end = kFramesBegin;
  /// The frame that is, or would be, the first one in it. Known once the segments before are left.
  std::uint64_t first_sequence = 0;
  /// The entries of the log that stand here; none if first > last.
  raft::Index first{1};
  raft::Index last{0};
  /// None: not in memory; see read_positions().
  std::optional<Positions> positions;
  std::uint64_t used = 0;  ///< when the positions were last asked for

  bool has_entries() const { return first <= last; }
  /// `from` and everything above it was truncated.
  void truncate(raft::Index from);
  /// Everything up to `base` is gone.
  void cut(raft::Index base);
  /// No entry in this segment belongs to the log any more.
  void clear();
  /// An entry was appended to the log.
  void add(raft::Index index, std::uint64_t offset, std::uint64_t bytes);
};

/// What has to be written after a crash before the log may be relied on: bytes that were read, but
/// maybe only from the kernel's memory, and zeroes over a torn frame.
struct Repair {
  std::size_t segment = 0;  ///< place in `segments`
  std::uint64_t offset = 0;
  std::string bytes;
};

struct LoadedLog {
  raft::HardState hard_state;
  Foundation foundation;
  Shape shape;
  std::vector<raft::MembershipAt> memberships;
  std::deque<Segment> segments;     ///< ascending by number, without gaps
  std::size_t current = 0;          ///< place of the newest segment with frames; 0 if none has any
  std::uint64_t sequence = 0;       ///< of the last frame
  std::uint64_t base_segment = 0;   ///< the number of the segment in which the newest base stands
  std::uint64_t payload_bytes = 0;  ///< of the entries of the log
  std::vector<Repair> repairs;
  std::vector<std::string> leftovers;  ///< files that a cut left behind; not read
};

/// Reads every byte of every segment that the mark names, and of one more.
///
/// Where the front was cut off, the first segment begins in the middle of a log: the predecessors
/// of its first frames are gone, and what these frames say of them is believed until the frame of
/// the cut, which has to come, says where the log begins.
///
/// A group of batches whose sync never returned may be torn; it was never acknowledged, and is
/// ignored. Anything else that is not as it was written is refused: a damaged frame that had been
/// durable, a missing, shortened, foreign or reordered file. See docs/formats/log.md for how the
/// two are distinguished, and for what cannot be distinguished.
///
/// Errors: corrupted (names the file and the offset), unsupported_format, io.
Result<LoadedLog> load_segments(const Disk& disk, const FolderMark& mark, raft::GroupId group);

/// The positions in a segment whose frames end at `end`. Errors: corrupted, io.
Result<Positions> read_positions(const DiskFile& file, std::uint64_t number, std::uint64_t salt,
                                 std::uint64_t end);

}  // namespace leasehold::storage
