// The frames of a segment and what stands in them, and the only code that knows their bytes.
// Format: docs/formats/log.md.
#pragma once

#include <leasehold/base/boxed.h>
#include <leasehold/base/result.h>
#include <leasehold/raft/entry.h>
#include <leasehold/raft/membership.h>
#include <leasehold/raft/ready.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::storage {

/// The version of a folder, and of every frame that is written to it: the log of one group, which
/// older builds know, and the log of all groups of a process.
inline constexpr std::uint8_t kLogFormat = 3;
inline constexpr std::uint8_t kSharedLogFormat = 4;

constexpr bool known_format(unsigned long format) {
  return format == kLogFormat || format == kSharedLogFormat;
}

/// "NAME has format 3, this build knows 2: …", with what to do.
Error unsupported_format(std::string_view what, unsigned long found);

/// What a disk writes as a whole or not at all.
inline constexpr std::uint64_t kSectorBytes = 512;
/// Frames begin at multiples of this. A header therefore never spans two sectors: after a crash it
/// is there as a whole or not at all.
inline constexpr std::uint64_t kFrameAlignment = 64;
inline constexpr std::size_t kFrameHeaderBytes = 64;
static_assert(kSectorBytes % kFrameAlignment == 0 && kFrameHeaderBytes == kFrameAlignment);

constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// Pinned.
enum class FrameKind : std::uint8_t {
  head = 1,   ///< first in each segment: whose it is. Sequence 0
  batch = 2,  ///< what shared one sync: the hard state, the ends of the log, entries
  mark = 3,   ///< no content of its own: says that frames are durable. Takes no sequence number
};

struct FrameHeader {
  std::uint8_t format = kLogFormat;
  FrameKind kind = FrameKind::mark;
  /// The segment's, chosen at random: a frame of another segment is never mistaken for one of this
  /// segment.
  std::uint64_t salt = 0;
  std::uint64_t sequence = 0;  ///< one more with each frame of the log; a mark repeats the last one
  /// All frames up to this one were durable when this one was written.
  std::uint64_t synced_through = 0;
  std::uint64_t body_bytes = 0;
  std::uint32_t body_check = 0;  ///< CRC32C of the body
  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
  /// Of header and body, up to where the next frame may begin.
  std::uint64_t frame_bytes() const {
    return align_up(kFrameHeaderBytes + body_bytes, kFrameAlignment);
  }
};

/// What must never be forgotten, and how much of the log must be there. Part of every frame that
/// changes either.
struct StateRecord {
  raft::HardState hard_state;
  raft::LogId last;
  friend bool operator==(const StateRecord&, const StateRecord&) = default;
};

struct HeadBody {
  std::uint64_t segment = 0;
  std::uint64_t segment_bytes = 0;  ///< the file's size
  std::uint64_t previous_salt = 0;  ///< of the segment before; 0 in the first one
  std::uint64_t cluster_id = 0;
  raft::NodeId id;
  raft::Uuid uuid;
  raft::GroupId group;  ///< 0 in a shared log
  friend bool operator==(const HeadBody&, const HeadBody&) = default;
};

/// How a group was formed and where its log begins: what stays when entries are cut off.
struct Foundation {
  /// The confirmed set of initial members, as a membership in which all vote. At a node that joined
  /// later: a membership without members.
  Boxed<raft::Membership> confirmed;
  /// Where the log begins; present once the group is formed.
  Boxed<raft::LogBase> base;
  friend bool operator==(const Foundation&, const Foundation&) = default;
};

/// The log is cut to the entries below `first`, then `count` entries follow up to state.last, then
/// everything up to a base goes from the front.
struct BatchBody {
  StateRecord state;
  raft::Index first;
  /// Of the entry before `first`. By Log Matching, entries that follow the right predecessor have
  /// the right log before them.
  raft::Term previous_term;
  std::uint32_t count = 0;
  /// The changed parts of the foundation; a base always comes with the confirmed set, so that
  /// neither needs anything before the frame.
  Foundation foundation;
  /// The whole log before this frame is dropped: the entries follow the base.
  bool reset = false;
  /// In a shared log: nothing is cut, and the entries are copies of what the log holds already.
  bool moved = false;
  /// In a shared log: the replica is gone, with all of its log.
  bool removed = false;
  friend bool operator==(const BatchBody&, const BatchBody&) = default;
};
/// The size without the foundation.
inline constexpr std::size_t kBatchBodyBytes = 78;
/// Before each section of a shared log.
inline constexpr std::size_t kSectionHeadBytes = 9;

/// The bytes before each entry's payload. Entries have checksums of their own, because they are
/// read one by one.
inline constexpr std::size_t kEntryHeadBytes = 25;
/// The largest value of an entry's length field.
inline constexpr std::uint64_t kPayloadBytesMax = 0xffffffffU;

/// An entry inside a batch, its payload a part of the bytes that were decoded.
struct EntryView {
  raft::LogId id;
  raft::EntryKind kind = raft::EntryKind::command;
  std::string_view payload;
};

/// A whole frame, with `header.body_bytes` and `header.body_check` taken from the body, filled with
/// zeroes up to the next frame.
std::string encode_frame(FrameHeader header, std::string_view body);
std::string encode_head(const HeadBody& body);

/// For how long earlier processes have promised to the node of a directory.
struct SupportRecord {
  raft::NodeId holder;
  raft::Uuid directory;
  raft::Duration duration{0};
  friend bool operator==(const SupportRecord&, const SupportRecord&) = default;
};

/// Of the replicas of a group that were removed here, the highest number: none of them comes back.
struct RetiredRecord {
  raft::GroupId group;
  raft::NodeId highest;
  friend bool operator==(const RetiredRecord&, const RetiredRecord&) = default;
};

/// What a process remembers beside its groups, in a shared log: all of it, in each record.
struct ProcessRecord {
  std::vector<SupportRecord> supports;
  std::vector<RetiredRecord> retired{};  ///< one for each group
  friend bool operator==(const ProcessRecord&, const ProcessRecord&) = default;
};

/// A part of a batch frame. Of a group: its entries follow.
struct Section {
  raft::GroupId group;
  BatchBody batch;
  /// Then the section is of no group.
  std::optional<ProcessRecord> process;
};

/// Makes a batch frame in place: payloads are copied once.
class BatchEncoder {
 public:
  /// Starts a frame in `out`, whose content is lost. The log of one group has one section in it.
  BatchEncoder(std::string& out, std::uint8_t format);
  /// Begins the section of a group; its entries follow.
  void begin(raft::GroupId group, const BatchBody& body);
  void add(const ProcessRecord& record);
  /// The offset in `out` where the next entry will begin.
  std::size_t position() const { return out_.size(); }
  void add(const raft::Entry& entry);
  /// An entry as it stands in another frame.
  void add_bytes(std::string_view entry) { out_.append(entry); }
  void finish(FrameHeader header);

 private:
  std::string& out_;
  std::uint8_t format_;
};

/// Decodes a header from the first kFrameHeaderBytes of `bytes`. None: these bytes are not a
/// header, or are damaged. A good header of another format is reported as such.
struct HeaderRead {
  std::optional<FrameHeader> header;
  std::optional<unsigned> other_format;
};
HeaderRead decode_header(std::string_view bytes);

// Each checks every length and enumerator. Errors: corrupted; unsupported_format (a membership's).

Result<HeadBody> decode_head(std::string_view body);
/// Takes everything before the entries of the next section off the front of the body of a frame.
/// `group`: whose log it is, if it is that of one.
Result<Section> take_section(std::string_view& body, std::uint8_t format, raft::GroupId group);
/// Takes one entry off the front of `bytes`.
Result<EntryView> take_entry(std::string_view& bytes);

}  // namespace leasehold::storage
