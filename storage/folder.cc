// The mark is text, so that a person can read it:
//
//   leasehold-log 1
//   cluster 16 hex digits
//   node 1
//   uuid 32 hex digits
//   incarnation 5
//   wal 12 open            or: wal 12 closed 34567
//   check 8 hex digits     CRC32C of everything above
#include <leasehold/storage/folder.h>
#include <leasehold/storage/record.h>
#include <leasehold/wire/crc32c.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

namespace leasehold::storage {
namespace {

constexpr std::string_view kMarkName = "LEASEHOLD";
constexpr std::string_view kNewMarkName = "LEASEHOLD.new";
constexpr std::string_view kHeading = "leasehold-log ";
/// No mark is near this long.
constexpr std::size_t kMarkBytesMax = 1024;

std::string hex(std::uint64_t value, std::size_t digits) {
  std::string out(digits, '0');
  for (std::size_t i = digits; i-- > 0; value >>= 4U) out[i] = "0123456789abcdef"[value & 0xfU];
  return out;
}

Error system_error(const std::string& what, int number) {
  const char* hint = "";
  if (number == EACCES || number == EPERM || number == EROFS) hint = ": make it writable";
  if (number == ENOSPC || number == EDQUOT) hint = ": free some space on its disk";
  return {ErrorCode::io, what + ": " + std::generic_category().message(number) + hint};
}

/// Reads "name value\n" lines. A line that is not as expected gives zero and clears ok().
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  bool ok() const { return ok_; }
  std::string_view rest() const { return rest_; }
  void expect(std::string_view text) {
    ok_ = ok_ && rest_.substr(0, text.size()) == text;
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

 private:
  std::string_view rest_;
  bool ok_ = true;
};

std::string body_of(const FolderMark& mark) {
  std::string out(kHeading);
  out += std::to_string(kLogFormat) + "\n";
  out += "cluster " + hex(mark.cluster_id, 16) + "\n";
  out += "node " + std::to_string(mark.id.value()) + "\n";
  out += "uuid " + hex(mark.uuid.high, 16) + hex(mark.uuid.low, 16) + "\n";
  out += "incarnation " + std::to_string(mark.incarnation.value()) + "\n";
  out += "wal " + std::to_string(mark.wal_number);
  out += mark.wal_size ? " closed " + std::to_string(*mark.wal_size) : " open";
  return out + "\n";
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

/// Writes all of `bytes` and syncs. Zero, or errno.
int write_and_sync(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(fd) == 0 ? 0 : errno;
}

}  // namespace

std::string encode_mark(const FolderMark& mark) {
  const std::string body = body_of(mark);
  return body + "check " + hex(wire::crc32c(body), 8) + "\n";
}

Result<FolderMark> decode_mark(std::string_view bytes) {
  const Error damaged{ErrorCode::corrupted, "the file LEASEHOLD is damaged"};
  Lines in(bytes);
  in.expect(kHeading);
  const std::uint64_t format = in.number(10, 20);
  if (!in.ok()) return damaged;
  if (format != kLogFormat) return unsupported_format("the log", format);

  FolderMark mark;
  in.expect("\ncluster ");
  mark.cluster_id = in.number(16, 16);
  in.expect("\nnode ");
  mark.id = raft::NodeId(in.number(10, 20));
  in.expect("\nuuid ");
  mark.uuid.high = in.number(16, 16);
  mark.uuid.low = in.number(16, 16);
  in.expect("\nincarnation ");
  mark.incarnation = raft::Incarnation(in.number(10, 20));
  in.expect("\nwal ");
  mark.wal_number = in.number(10, 20);
  if (in.rest().substr(0, 8) == " closed ") {
    in.expect(" closed ");
    mark.wal_size = in.number(10, 20);
  }
  // Whatever the lines above let through, only the one true spelling passes here.
  if (!in.ok() || encode_mark(mark) != bytes) return damaged;
  return mark;
}

Result<Folder> Folder::open(const std::string& path) {
  std::error_code error;
  const bool made = std::filesystem::create_directories(path, error);
  if (error) return system_error("cannot make the folder " + path, error.value());
  Folder folder(path, ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.descriptor_ < 0) return system_error("cannot open the folder " + path, errno);
  if (::flock(folder.descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return system_error("cannot lock the folder " + path, errno);
    return Error{ErrorCode::in_use, "another process uses the folder " + path +
                                        ": stop it, or give this node a folder of its own"};
  }
  if (made) {
    const std::string parent = std::filesystem::absolute(path, error).parent_path().string();
    const Descriptor above(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (above.get() < 0 || ::fsync(above.get()) != 0) {
      return system_error("cannot sync the folder " + parent, errno);
    }
  }
  return folder;
}

Folder::Folder(Folder&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

Folder::~Folder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<bool> Folder::blank() const {
  std::error_code error;
  std::filesystem::directory_iterator at(path_, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name != kMarkName && name != kNewMarkName) return false;
  }
  if (error) return system_error("cannot list the folder " + path_, error.value());
  return true;
}

Result<std::optional<FolderMark>> Folder::read_mark() const {
  const Descriptor file(
      ::openat(descriptor_, std::string(kMarkName).c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    if (errno == ENOENT) return std::optional<FolderMark>();
    return system_error("cannot read LEASEHOLD in " + path_, errno);
  }
  std::string text(kMarkBytesMax, '\0');
  const ssize_t count = ::read(file.get(), text.data(), text.size());
  if (count < 0) return system_error("cannot read LEASEHOLD in " + path_, errno);
  text.resize(static_cast<std::size_t>(count));
  const auto mark = decode_mark(text);
  if (!mark) return mark.error();
  return std::optional<FolderMark>(mark.value());
}

Result<void> Folder::write_mark(const FolderMark& mark) const {
  const std::string name(kMarkName);
  const std::string fresh(kNewMarkName);
  const auto failed = [this] { return system_error("cannot write LEASEHOLD in " + path_, errno); };
  {
    const Descriptor file(
        ::openat(descriptor_, fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) return failed();
    errno = write_and_sync(file.get(), encode_mark(mark));
    if (errno != 0) return failed();
  }
  if (::renameat(descriptor_, fresh.c_str(), descriptor_, name.c_str()) != 0) return failed();
  if (::fsync(descriptor_) != 0) return failed();
  return {};
}

}  // namespace leasehold::storage
