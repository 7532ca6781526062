#include <leasehold/storage/segment_check.h>
#include <leasehold/storage/segment_load.h>
#include <leasehold/storage/segment_record.h>
#include <leasehold/storage/segment_scan.h>
#include <leasehold/wire/crc32c.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold::storage {
namespace {

/// The bytes of a file, at most `bytes_max` of them; none: a cut has removed it.
Result<std::optional<std::string>> bytes_of(const Disk& disk, const std::string& name,
                                            std::uint64_t bytes_max) {
  const auto file = disk.open(name);
  if (!file) return std::optional<std::string>();
  std::string bytes(std::min(file.value()->size(), bytes_max), '\0');
  if (auto read = file.value()->read(0, bytes.data(), bytes.size()); !read) return read.error();
  return std::optional<std::string>(std::move(bytes));
}

std::optional<FrameHeader> header_at(std::string_view bytes, std::uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < kFrameHeaderBytes) return std::nullopt;
  return decode_header(bytes.substr(at, kFrameHeaderBytes)).header;
}

bool is_good(std::string_view bytes, std::uint64_t at, const FrameHeader& header) {
  const std::string_view rest = bytes.substr(at + kFrameHeaderBytes);
  return header.body_bytes <= rest.size() &&
         wire::crc32c(rest.substr(0, header.body_bytes)) == header.body_check;
}

/// Whether the writer has left the segment before this one. Errors: io.
Result<bool> is_begun(const Disk& disk, const std::string& name) {
  const auto bytes = bytes_of(disk, name, kFramesBegin + kFrameHeaderBytes);
  if (!bytes) return bytes.error();
  if (!bytes.value()) return false;
  const auto header = header_at(*bytes.value(), kFramesBegin);
  return header && header->kind == FrameKind::batch;
}

Result<void> check(const std::string& name, std::string_view bytes) {
  const auto damaged = [&name](std::uint64_t at, const std::string& why) {
    return Error{ErrorCode::corrupted, fmt::format("the file {}, byte {}: {}", name, at, why)};
  };
  const auto head = header_at(bytes, 0);
  if (!head || head->kind != FrameKind::head || !is_good(bytes, 0, *head)) {
    return damaged(0, "its head is damaged");
  }
  std::uint64_t at = kFramesBegin;
  std::uint64_t sequence = 0;
  for (;;) {
    const auto header = header_at(bytes, at);
    if (!header || header->salt != head->salt || header->kind != FrameKind::batch ||
        !is_good(bytes, at, *header)) {
      break;
    }
    if (sequence != 0 && header->sequence != sequence + 1) {
      return damaged(at, "another frame stands there");
    }
    sequence = header->sequence;
    at += header->frame_bytes();
  }
  const Tail tail = judge_tail(bytes, head->salt, at, sequence + 1);
  if (tail.kind == TailKind::clean) return {};
  return damaged(at, tail.kind == TailKind::damaged ? tail.why : "a torn frame where none can be");
}

}  // namespace

Result<std::uint64_t> check_segments(const Disk& disk,
                                     const std::function<bool(std::uint64_t bytes)>& step) {
  const auto names = disk.list();
  if (!names) return names.error();
  std::string before;
  std::uint64_t checked = 0;
  for (const std::string& name : names.value()) {
    if (name.size() != segment_name(0).size()) continue;
    const std::string left = std::exchange(before, name);
    if (left.empty()) continue;
    const auto begun = is_begun(disk, name);
    if (!begun) return begun.error();
    if (!begun.value()) break;
    const auto bytes = bytes_of(disk, left, UINT64_MAX);
    if (!bytes) return bytes.error();
    if (!bytes.value()) continue;
    if (auto whole = check(left, *bytes.value()); !whole) return whole.error();
    ++checked;
    if (!step(bytes.value()->size())) break;
  }
  return checked;
}

}  // namespace leasehold::storage
