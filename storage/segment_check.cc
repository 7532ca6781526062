#include <leasehold/storage/segment_check.h>
#include <leasehold/storage/segment_load.h>
#include <leasehold/storage/segment_record.h>
#include <leasehold/storage/segment_scan.h>
#include <leasehold/wire/crc32c.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace leasehold::storage {
namespace {

/// The bytes of a file, at most `bytes_max` of them; none: it is gone, or cannot be read.
std::optional<std::string> bytes_of(const std::string& path, std::size_t bytes_max) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(path, error);
  if (error) return std::nullopt;
  std::string bytes(std::min<std::uint64_t>(size, bytes_max), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file || static_cast<std::size_t>(file.gcount()) != bytes.size()) return std::nullopt;
  return bytes;
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

/// Whether the writer has left the segment before this one.
bool is_begun(const std::string& path) {
  const auto bytes = bytes_of(path, kFramesBegin + kFrameHeaderBytes);
  if (!bytes) return false;
  const auto header = header_at(*bytes, kFramesBegin);
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

Result<std::uint64_t> check_segments(const std::string& dir,
                                     const std::function<bool(std::uint64_t bytes)>& step) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto at = std::filesystem::directory_iterator(dir, error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    if (at->path().extension() == ".seg") names.push_back(at->path().filename().string());
  }
  if (error) return Error{ErrorCode::io, fmt::format("cannot list {}: {}", dir, error.message())};
  std::sort(names.begin(), names.end());
  std::uint64_t checked = 0;
  for (std::size_t i = 0; i + 1 < names.size(); ++i) {
    if (!is_begun(fmt::format("{}/{}", dir, names[i + 1]))) break;
    const auto bytes = bytes_of(fmt::format("{}/{}", dir, names[i]), SIZE_MAX);
    if (!bytes) continue;  // a cut has removed it
    if (auto whole = check(names[i], *bytes); !whole) return whole.error();
    ++checked;
    if (!step(bytes->size())) break;
  }
  return checked;
}

}  // namespace leasehold::storage
