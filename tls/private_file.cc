#include <leasehold/tls/private_file.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace leasehold::tls {

namespace {

Error cannot(const char* do_what, const std::string& path, int code) {
  return Error{ErrorCode::io, fmt::format("cannot {} {}: {}", do_what, path,
                                          std::generic_category().message(code))};
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

Result<void> write_file(const std::string& path, std::string_view bytes, unsigned mode,
                        bool replace) {
  const std::string fresh = fmt::format("{}.{}.new", path, ::getpid());
  ::unlink(fresh.c_str());
  const int file =
      ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  if (file < 0) return cannot("write", path, errno);
  const bool written = write_all(file, bytes) && ::fchmod(file, mode) == 0 && ::fsync(file) == 0;
  int code = errno;
  ::close(file);
  if (written) {
    // link() does not replace what is there, even if it came meanwhile.
    const int moved =
        replace ? std::rename(fresh.c_str(), path.c_str()) : ::link(fresh.c_str(), path.c_str());
    code = errno;
    if (moved == 0) {
      if (!replace) ::unlink(fresh.c_str());
      return {};
    }
  }
  ::unlink(fresh.c_str());
  if (written && code == EEXIST) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} exists: choose another place, or --force to replace it", path)};
  }
  return cannot("write", path, code);
}

}  // namespace leasehold::tls
