#include <leasehold/kv/rocksdb_record.h>

#include <rocksdb/status.h>

#include <utility>

namespace leasehold::kv {
namespace {

constexpr std::uint8_t kFormat = 1;

}  // namespace

std::string encode_record(std::initializer_list<std::uint64_t> numbers) {
  std::string out(1, static_cast<char>(kFormat));
  for (const std::uint64_t number : numbers) {
    for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(number >> shift));
  }
  return out;
}

Result<Record> decode_record(std::string_view what, std::string_view& bytes, std::size_t count) {
  const std::string name = "the " + std::string(what) + " record ";
  if (bytes.empty()) return Error{ErrorCode::corrupted, name + "is empty"};
  const auto format = static_cast<std::uint8_t>(bytes[0]);
  if (format != kFormat) {
    return Error{ErrorCode::unsupported_format,
                 name + "has format " + std::to_string(format) + ", this build knows " +
                     std::to_string(kFormat) + ": use a newer build"};
  }
  if (bytes.size() < 1 + 8 * count) return Error{ErrorCode::corrupted, name + "is damaged"};
  Record numbers(count, 0);
  for (std::size_t i = 0; i < 8 * count; ++i) {
    numbers[i / 8] = (numbers[i / 8] << 8U) | static_cast<unsigned char>(bytes[1 + i]);
  }
  bytes.remove_prefix(1 + 8 * count);
  return numbers;
}

Result<Record> decode_whole_record(std::string_view what, std::string_view bytes,
                                   std::size_t count) {
  auto numbers = decode_record(what, bytes, count);
  if (numbers && !bytes.empty()) {
    return Error{ErrorCode::corrupted, "the " + std::string(what) + " record is damaged"};
  }
  return numbers;
}

Error status_error(const std::string& what, const rocksdb::Status& status) {
  const std::string message = what + ": " + status.ToString();
  if (status.IsIOError() && message.find("LOCK") != std::string::npos) {
    return {ErrorCode::in_use, message + ": another process has it open, stop it"};
  }
  if (status.IsNoSpace()) return {ErrorCode::io, message + ": free some space on its disk"};
  // Incomplete: a write that a background error keeps from being done.
  const bool refused = status.IsIncomplete() || status.IsBusy() || status.IsTimedOut() ||
                       status.IsAborted() || status.IsTryAgain() || status.IsShutdownInProgress();
  if (refused || (status.IsIOError() && !status.IsPathNotFound())) return {ErrorCode::io, message};
  return {ErrorCode::corrupted, message};
}

Error in_folder(const std::string& dir, const Error& error) {
  std::string message = "the store in " + dir + ": " + error.message;
  if (error.code == ErrorCode::corrupted) {
    message +=
        ". It cannot be trusted: wipe this folder, and the store is made again from the log while "
        "the log still reaches back to its beginning";
  }
  return {error.code, std::move(message)};
}

}  // namespace leasehold::kv
