// The mark is text, so that a person can read it:
//
//   leasehold-log 3
//   cluster 16 hex digits
//   node 1
//   uuid 32 hex digits
//   incarnation 5
//   segments 1 4 open      or, with segment, end and sequence: segments 1 4 closed 3 34567 981
//   predecessor 16 hex digits of a salt, a sequence; zeroes before the segment 1
//   check 8 hex digits     CRC32C of everything above
//
// and spaces up to its fixed size.
#include <leasehold/base/assert.h>
#include <leasehold/storage/folder.h>
#include <leasehold/storage/segment_record.h>
#include <leasehold/wire/crc32c.h>

#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <system_error>

namespace leasehold::storage {
namespace {

constexpr std::string_view kHeading = "leasehold-log ";

/// Reads "name value\n" lines. A line that is not as expected gives zero and clears ok().
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  bool ok() const { return ok_; }
  bool next_is(std::string_view text) const { return rest_.substr(0, text.size()) == text; }
  void expect(std::string_view text) {
    ok_ = ok_ && next_is(text);
    if (ok_) rest_.remove_prefix(text.size());
  }
  std::uint64_t number(int base, std::size_t digits_max) {
    const std::string_view text = rest_.substr(0, digits_max);
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, base);
    ok_ = ok_ && parsed.ec == std::errc();
    if (!ok_) return 0;
    rest_.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
    return value;
  }
  std::uint64_t decimal(std::string_view before) {
    expect(before);
    return number(10, 20);
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

std::string body_of(const FolderMark& mark) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{}{}\n", kHeading, mark.format);
  fmt::format_to(out, "cluster {:016x}\n", mark.cluster_id);
  fmt::format_to(out, "node {}\n", mark.id.value());
  fmt::format_to(out, "uuid {:016x}{:016x}\n", mark.uuid.high, mark.uuid.low);
  fmt::format_to(out, "incarnation {}\n", mark.incarnation.value());
  fmt::format_to(out, "segments {} {} ", mark.first_segment, mark.last_segment);
  if (mark.closed) {
    const ClosedAt& closed = *mark.closed;
    fmt::format_to(out, "closed {} {} {}\n", closed.segment, closed.end, closed.sequence);
  } else {
    fmt::format_to(out, "open\n");
  }
  fmt::format_to(out, "predecessor {:016x} {}\n", mark.predecessor.salt, mark.predecessor.sequence);
  return text;
}

std::string check_line(std::string_view lines) {
  return fmt::format("check {:08x}\n", wire::crc32c(lines));
}

/// The check is the last line of every format; only spaces follow it.
bool check_holds(std::string_view bytes) {
  const std::size_t at = bytes.rfind("\ncheck ");
  if (at == std::string_view::npos) return false;
  const std::string line = check_line(bytes.substr(0, at + 1));
  return bytes.substr(at + 1, line.size()) == line &&
         bytes.substr(at + 1 + line.size()).find_first_not_of(" \n") == std::string_view::npos;
}

}  // namespace

std::string encode_mark(const FolderMark& mark) {
  std::string out = body_of(mark);
  out += check_line(out);
  LEASEHOLD_ASSERT(out.size() < kMarkBytes);
  out.resize(kMarkBytes - 1, ' ');
  return out + "\n";
}

Result<FolderMark> decode_mark(std::string_view bytes) {
  const Error damaged{ErrorCode::corrupted, "the file LEASEHOLD is damaged"};
  Lines in(bytes);
  const std::uint64_t format = in.decimal(kHeading);
  // The format counts only when the check holds: a damaged file is reported as damaged.
  if (!in.ok() || !check_holds(bytes)) return damaged;
  if (!known_format(format)) return unsupported_format("the log", format);

  FolderMark mark;
  mark.format = static_cast<std::uint8_t>(format);
  in.expect("\ncluster ");
  mark.cluster_id = in.number(16, 16);
  mark.id = raft::NodeId(in.decimal("\nnode "));
  in.expect("\nuuid ");
  mark.uuid.high = in.number(16, 16);
  mark.uuid.low = in.number(16, 16);
  mark.incarnation = raft::Incarnation(in.decimal("\nincarnation "));
  mark.first_segment = in.decimal("\nsegments ");
  mark.last_segment = in.decimal(" ");
  if (in.next_is(" closed ")) {
    ClosedAt closed;
    closed.segment = in.decimal(" closed ");
    closed.end = in.decimal(" ");
    closed.sequence = in.decimal(" ");
    mark.closed = closed;
    in.expect("\n");
  } else {
    in.expect(" open\n");
  }
  in.expect("predecessor ");
  mark.predecessor.salt = in.number(16, 16);
  mark.predecessor.sequence = in.decimal(" ");
  // The lines above are lenient; this accepts only the exact text that encode_mark() writes.
  if (!in.ok() || encode_mark(mark) != bytes) return damaged;
  return mark;
}

}  // namespace leasehold::storage
