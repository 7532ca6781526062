// Reading the segments of a folder: what they hold, and the proof that nothing is missing.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/storage/disk.h>
#include <leasehold/storage/folder.h>
#include <leasehold/storage/group_index.h>
#include <leasehold/storage/group_load.h>
#include <leasehold/storage/positions.h>
#include <leasehold/storage/segment_record.h>
#include <leasehold/storage/shape.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace leasehold::storage {

/// "0000000000000007.seg"
std::string segment_name(std::uint64_t number);
/// Where the first frame behind the head stands.
inline constexpr std::uint64_t kFramesBegin = kSectorBytes;

/// Where the entries of each group stand in a segment.
using SegmentPositions = std::unordered_map<std::uint64_t, Positions>;

/// One file of the log.
struct Segment {
  std::uint64_t number = 0;
  std::uint64_t salt = 0;
  /// Of frames that name none: those of the log of one group.
  raft::GroupId group;
  std::shared_ptr<DiskFile> file;
  /// Where the next frame goes; kFramesBegin in a segment without frames.
  std::uint64_t end = kFramesBegin;
  /// The frame that is, or would be, the first one in it. Known once the segments before are left.
  std::uint64_t first_sequence = 0;
  /// By group; entries that are not of the log any more may be among them. None: not in memory;
  /// see read_positions().
  std::optional<SegmentPositions> positions;
  std::uint64_t used = 0;  ///< when the positions were last asked for
};

/// What has to be written after a crash before the log may be relied on: bytes that were read, but
/// maybe only from the kernel's memory, and zeroes over a torn frame.
struct Repair {
  std::size_t segment = 0;  ///< place in `segments`
  std::uint64_t offset = 0;
  std::string bytes;
};

struct LoadedLog {
  std::map<raft::GroupId, LoadedGroup> groups;
  ProcessRecord process;
  std::uint64_t process_segment = 0;  ///< in which it stands; 0: nowhere
  Holders holders;
  std::deque<Segment> segments;  ///< ascending by number, without gaps
  std::size_t current = 0;       ///< place of the newest segment with frames; 0 if none has any
  std::uint64_t sequence = 0;    ///< of the last frame
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
/// `group`: whose log it has to be; none: it is opened as a shared one, whatever it was. Errors:
/// corrupted (names the file and the offset), unsupported_format, io.
Result<LoadedLog> load_segments(const Disk& disk, const FolderMark& mark,
                                std::optional<raft::GroupId> group);

/// The part of a segment that has frames.
struct SegmentExtent {
  std::shared_ptr<DiskFile> file;
  std::uint64_t number = 0;
  std::uint64_t salt = 0;
  std::uint64_t end = 0;
  raft::GroupId group;
};

/// Goes through the sections of a segment, and through the entries of each: `bytes`, at `offset` in
/// the file, are those of the entry. Errors: corrupted, io, and those of the calls.
class SegmentVisitor {
 public:
  virtual ~SegmentVisitor() = default;
  virtual Result<void> section(const Section& section) = 0;
  virtual Result<void> entry(const EntryView& entry, std::uint64_t offset,
                             std::string_view bytes) = 0;
  virtual Result<void> section_ends() { return {}; }
};
Result<void> visit_segment(const SegmentExtent& extent, SegmentVisitor& visitor);

/// The positions in a segment.
Result<SegmentPositions> read_positions(const SegmentExtent& extent);

}  // namespace leasehold::storage
