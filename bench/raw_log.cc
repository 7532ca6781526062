#include <leasehold/bench/raw_log.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace leasehold::bench {
namespace {

Result<void> pwrite_all(int fd, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      return system_error("pwrite");
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

}  // namespace

Result<RawLog> RawLog::create(const std::string& path, std::uint64_t bytes, Growth growth) {
  Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.open()) return system_error("open " + path);
  if (growth == Growth::preallocated) {
    const std::string zeroes(1U << 20U, '\0');
    for (std::uint64_t offset = 0; offset < bytes; offset += zeroes.size()) {
      const auto part =
          static_cast<std::size_t>(std::min<std::uint64_t>(zeroes.size(), bytes - offset));
      auto written = pwrite_all(file.get(), std::string_view(zeroes).substr(0, part), offset);
      if (!written) return written.error();
    }
    if (fsync(file.get()) != 0) return system_error("fsync " + path);
  }
  return RawLog(std::move(file), bytes, growth);
}

Result<void> RawLog::write(std::string_view record) {
  if (growth_ == Growth::preallocated) {
    if (record.size() > bytes_) {
      return Error{ErrorCode::invalid_argument, "the record is larger than the log file"};
    }
    if (position_ + record.size() > bytes_) position_ = 0;
  }
  auto written = pwrite_all(file_.get(), record, position_);
  if (written) position_ += record.size();
  return written;
}

Result<void> RawLog::sync() {
  if (fdatasync(file_.get()) != 0) return system_error("fdatasync");
  return {};
}

}  // namespace leasehold::bench
