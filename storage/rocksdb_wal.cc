// A write-ahead file is a row of 32 KiB blocks. A block holds fragments and, if fewer than 7 bytes
// are left, zeros:
//
//   fragment: {masked CRC32C of type and data u32}{data length u16}{type u8}{data}, little-endian
//   type:     1 a whole record, 2 its first fragment, 3 a middle one, 4 its last
//
// (Facts of RocksDB's own format, which is stable; we neither recycle nor compress these files.)
//
// One record is one write, and the log syncs each write before it begins the next. So after a crash
// at most one record, the last, is incomplete. What that looks like:
//   - the file ends inside the record, at any byte; or
//   - it is zeros from inside the record to the end of the file (a whole record ends with a state
//     record, which begins with its format, so never with many zeros); or
//   - the record begins with a header of zeros: the file's new size reached the disk and the data
//     did not. Fragments of the same record may stand in later blocks.
// Everything else is damage. Damage can look like the first case, when it hits a length: then the
// rest of the file still is a fragment with a good checksum, or holds whole records further on.
#include <leasehold/storage/rocksdb_wal.h>
#include <leasehold/wire/crc32c.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <vector>

namespace leasehold::storage {
namespace {

constexpr std::size_t kBlockBytes = 32768;
constexpr std::size_t kHeaderBytes = 7;
/// A state record has 58 bytes, and its first one is no zero.
constexpr std::size_t kZerosAtEndMax = 64;
constexpr std::uint8_t kFull = 1;
constexpr std::uint8_t kFirst = 2;
constexpr std::uint8_t kLast = 4;

std::uint32_t little(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = (value << 8U) | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

bool all_zero(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
}

/// `bytes` begins with the type.
bool checksum_fits(std::uint32_t stored, std::string_view bytes) {
  const std::uint32_t crc = wire::crc32c(bytes);
  return stored == ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
}

/// What stands at one place of a file.
struct Fragment {
  enum class State { good, damaged, cut_off, zeros, padding };
  State state = State::damaged;
  std::uint8_t type = 0;
  std::size_t size = 0;  ///< with its header; padding: its length

  bool starts_record() const { return state == State::good && (type == kFull || type == kFirst); }
};

/// The fragment at `offset`, which is inside `file`.
Fragment fragment_at(std::string_view file, std::size_t offset) {
  using State = Fragment::State;
  const std::size_t room = kBlockBytes - offset % kBlockBytes;
  const std::string_view rest = file.substr(offset, room);
  if (room < kHeaderBytes)
    return {all_zero(rest) ? State::padding : State::damaged, 0, rest.size()};
  if (all_zero(rest.substr(0, kHeaderBytes))) return {State::zeros, 0, rest.size()};
  if (rest.size() < kHeaderBytes) return {State::cut_off, 0, rest.size()};
  const std::size_t size = kHeaderBytes + little(rest.substr(4, 2));
  const auto type = static_cast<std::uint8_t>(rest[6]);
  // No fragment is longer than its block, so only the end of the file can cut one off.
  if (size > rest.size()) {
    return {size <= room ? State::cut_off : State::damaged, type, rest.size()};
  }
  const bool good = type >= kFull && type <= kLast &&
                    checksum_fits(little(rest.substr(0, 4)), rest.substr(6, size - 6));
  return {good ? State::good : State::damaged, type, size};
}

/// Whether the rest of the file behind a torn record shows that it was no torn record.
bool more_was_written(std::string_view file, std::size_t torn_at) {
  const std::string_view rest = file.substr(torn_at);
  if (rest.size() > kHeaderBytes && checksum_fits(little(rest.substr(0, 4)), rest.substr(6))) {
    return true;  // a whole fragment whose length was damaged
  }
  const std::size_t block_end = std::min(file.size(), (torn_at / kBlockBytes + 1) * kBlockBytes);
  for (std::size_t offset = torn_at + 1; offset + kHeaderBytes <= block_end; ++offset) {
    const auto type = static_cast<std::uint8_t>(file[offset + 6]);
    if ((type == kFull || type == kFirst) && fragment_at(file, offset).starts_record()) return true;
  }
  for (std::size_t block = block_end; block < file.size(); block += kBlockBytes) {
    for (std::size_t offset = block; offset < std::min(file.size(), block + kBlockBytes);) {
      const Fragment fragment = fragment_at(file, offset);
      if (fragment.starts_record()) return true;
      if (fragment.state != Fragment::State::good) break;
      offset += fragment.size;
    }
  }
  return false;
}

/// Whether the damaged fragment at `offset` is the beginning of a write whose rest never arrived:
/// zeros from inside it to the end of the file, more of them than any whole record ends with.
bool fades_into_zeros(std::string_view file, std::size_t offset, std::size_t size) {
  const std::size_t last = file.find_last_not_of('\0');
  return last < offset + size && file.size() - last > kZerosAtEndMax;
}

/// The length of the good part of a file; less than its size when a torn record follows. Errors:
/// corrupted.
Result<std::size_t> good_length(std::string_view file) {
  using State = Fragment::State;
  const auto damaged = [](std::size_t offset) {
    return Error{ErrorCode::corrupted, "is damaged at offset " + std::to_string(offset)};
  };
  std::size_t record = 0;  // where the record that is being read begins
  bool inside = false;     // its last fragment has not come yet
  for (std::size_t offset = 0; offset < file.size();) {
    const Fragment fragment = fragment_at(file, offset);
    const bool faded =
        fragment.state == State::damaged && fades_into_zeros(file, offset, fragment.size);
    if (fragment.state == State::damaged && !faded) return damaged(offset);
    if (fragment.state == State::zeros || fragment.state == State::cut_off || faded) {
      if (more_was_written(file, offset)) return damaged(offset);
      return inside ? record : offset;
    }
    if (fragment.state == State::good) {
      if (fragment.starts_record() == inside) return damaged(offset);
      if (!inside) record = offset;
      inside = fragment.type != kFull && fragment.type != kLast;
    }
    offset += fragment.size;
  }
  return inside ? record : file.size();
}

Error system_error(const std::string& what, int number) {
  return {ErrorCode::io, what + ": " + std::generic_category().message(number)};
}

Result<std::string> read_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error("cannot open " + path, errno);
  std::string content;
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  content.resize(error ? 0 : static_cast<std::size_t>(size));
  std::size_t have = 0;
  int failure = error.value();
  while (failure == 0 && have < content.size()) {
    const ssize_t count = ::read(fd, content.data() + have, content.size() - have);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) failure = errno;
    if (count <= 0) break;
    have += static_cast<std::size_t>(count);
  }
  ::close(fd);
  if (failure != 0) return system_error("cannot read " + path, failure);
  content.resize(have);
  return content;
}

/// Cuts the file to `size`, durably.
Result<void> cut(const std::string& path, std::size_t size) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return system_error("cannot open " + path, errno);
  int failure = 0;
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0 || ::fsync(fd) != 0) failure = errno;
  ::close(fd);
  if (failure != 0) return system_error("cannot cut " + path, failure);
  return {};
}

/// Ascending by number.
Result<std::vector<WalFile>> list_wals(const std::string& dir) {
  std::vector<WalFile> found;
  std::error_code error;
  std::filesystem::directory_iterator at(dir, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (at->path().extension() != ".log") continue;
    WalFile file;
    const char* stem_end = name.data() + name.size() - 4;
    const auto parsed = std::from_chars(name.data(), stem_end, file.number);
    if (parsed.ec != std::errc() || parsed.ptr != stem_end) continue;
    std::error_code gone;
    file.size = at->file_size(gone);
    if (gone == std::errc::no_such_file_or_directory) continue;  // RocksDB drops old files itself
    if (gone) return system_error("cannot look at " + at->path().string(), gone.value());
    found.push_back(file);
  }
  if (error) return system_error("cannot list " + dir, error.value());
  std::sort(found.begin(), found.end(),
            [](const WalFile& a, const WalFile& b) { return a.number < b.number; });
  return found;
}

std::string wal_path(const std::string& dir, std::uint64_t number) {
  std::string name = std::to_string(number);
  name.insert(0, 6 - std::min<std::size_t>(6, name.size()), '0');
  return dir + "/" + name + ".log";
}

/// Checks one file and cuts its torn end off, if it may have one.
Result<void> check_wal(const std::string& path, bool may_be_torn) {
  const auto content = read_file(path);
  if (!content) return content.error();
  const auto good = good_length(content.value());
  if (!good) return Error{good.error().code, path + " " + good.error().message};
  if (good.value() == content.value().size()) return {};
  if (!may_be_torn) {
    return Error{ErrorCode::corrupted, path + " ends in the middle of a record, at offset " +
                                           std::to_string(good.value())};
  }
  return cut(path, good.value());
}

}  // namespace

Result<std::optional<WalFile>> newest_wal(const std::string& dir) {
  const auto files = list_wals(dir);
  if (!files) return files.error();
  if (files.value().empty()) return std::optional<WalFile>();
  return std::optional<WalFile>(files.value().back());
}

Result<void> check_wals(const std::string& dir, const WalExpectation& expected) {
  const auto listed = list_wals(dir);
  if (!listed) return listed.error();
  const std::vector<WalFile>& files = listed.value();
  const std::string expected_path = wal_path(dir, expected.number);
  if (expected.number > 0 && (files.empty() || files.back().number < expected.number)) {
    return Error{ErrorCode::corrupted, expected_path + " is missing"};
  }
  if (expected.closed_size) {
    const WalFile& newest = files.back();
    if (newest.number != expected.number || newest.size != *expected.closed_size) {
      return Error{ErrorCode::corrupted,
                   expected_path + " was closed with " + std::to_string(*expected.closed_size) +
                       " bytes, but the newest file is " + wal_path(dir, newest.number) + " with " +
                       std::to_string(newest.size)};
    }
  }
  for (const WalFile& file : files) {
    const bool newest = file.number == files.back().number;
    if (auto checked = check_wal(wal_path(dir, file.number), newest && !expected.closed_size);
        !checked) {
      return checked;
    }
  }
  return {};
}

}  // namespace leasehold::storage
