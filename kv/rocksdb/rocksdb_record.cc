#include <leasehold/base/coding.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>

#include <fmt/format.h>
#include <rocksdb/status.h>

#include <array>
#include <optional>
#include <span>
#include <utility>

namespace leasehold::kv {
namespace {

constexpr std::uint8_t kRecordFormat = 1;
/// The format of a value that is attached to a lease: builds without leases refuse it.
constexpr std::uint8_t kLeasedFormat = 2;

Error damaged(std::string_view what) {
  return {ErrorCode::corrupted, fmt::format("the {} record is damaged", what)};
}

}  // namespace

std::string encode_record(std::initializer_list<std::uint64_t> numbers) {
  std::string out;
  BigWriter to(out);
  to.u8(kRecordFormat);
  for (const std::uint64_t number : numbers) to.u64(number);
  return out;
}

namespace {

/// Reads as many numbers as `numbers` has. Every read of a value comes through here, so an error is
/// only worded when there is one.
std::optional<Error> decode_numbers(std::string_view what, std::uint8_t expected,
                                    std::string_view& bytes, std::span<std::uint64_t> numbers) {
  BigReader in(bytes);
  const std::uint8_t format = in.u8();
  if (!in.ok()) return Error{ErrorCode::corrupted, fmt::format("the {} record is empty", what)};
  if (format != expected) {
    return Error{ErrorCode::unsupported_format,
                 fmt::format("the {} record has format {}, this build knows {}: use a newer build",
                             what, format, expected)};
  }
  for (std::uint64_t& number : numbers) number = in.u64();
  if (!in.ok()) return damaged(what);
  bytes = in.rest();
  return std::nullopt;
}

}  // namespace

Result<Record> decode_record(std::string_view what, std::string_view& bytes, std::size_t count) {
  Record numbers(count, 0);
  if (auto error = decode_numbers(what, kRecordFormat, bytes, numbers)) return *std::move(error);
  return numbers;
}

std::string encode_value_head(const Value& value) {
  if (value.lease == grant::LeaseId(0)) {
    return encode_record({value.create_revision, value.mod_revision, value.version});
  }
  std::string out = encode_record(
      {value.create_revision, value.mod_revision, value.version, value.lease.value()});
  out[0] = static_cast<char>(kLeasedFormat);
  return out;
}

namespace {

/// The value without its bytes, which `bytes` is left with.
Result<Value> decode_value_head(std::string_view& bytes) {
  const bool leased = !bytes.empty() && bytes[0] == static_cast<char>(kLeasedFormat);
  std::array<std::uint64_t, 4> n{};
  auto error = leased ? decode_numbers("value", kLeasedFormat, bytes, n)
                      : decode_numbers("value", kRecordFormat, bytes, std::span(n).first(3));
  if (error) return *std::move(error);
  return Value{Bytes(), n[0], n[1], n[2], grant::LeaseId(n[3])};
}

}  // namespace

Result<Value> decode_value(std::string_view bytes, Load load) {
  auto value = decode_value_head(bytes);
  if (!value) return value;
  if (load == Load::whole) {
    value.value().bytes = Bytes(bytes);
  } else {
    value.value().left_out = bytes.size();
  }
  return value;
}

Result<Value> take_value(std::string record, Load load) {
  std::string_view rest = record;
  auto value = decode_value_head(rest);
  if (!value) return value;
  if (load == Load::whole) {
    const std::size_t head = record.size() - rest.size();
    value.value().bytes = Bytes(std::move(record)).slice(head);
  } else {
    value.value().left_out = rest.size();
  }
  return value;
}

Result<Record> decode_whole_record(std::string_view what, std::string_view bytes,
                                   std::size_t count) {
  auto numbers = decode_record(what, bytes, count);
  if (numbers && !bytes.empty()) return damaged(what);
  return numbers;
}

Error status_error(const std::string& what, const rocksdb::Status& status) {
  const std::string message = fmt::format("{}: {}", what, status.ToString());
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
  std::string message = fmt::format("the store in {}: {}", dir, error.message);
  if (error.code == ErrorCode::corrupted) {
    message +=
        ". It cannot be trusted: wipe this folder, and the store is made again from the log while "
        "the log still reaches back to its beginning";
  }
  return {error.code, std::move(message)};
}

}  // namespace leasehold::kv
