#include <leasehold/server/small_file.h>
#include <leasehold/storage/descriptor.h>
#include <leasehold/storage/private_folder.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace leasehold::server {
namespace {

constexpr std::string_view kFormat = "1";

Error file_error(const std::string& what) {
  return {ErrorCode::io, fmt::format("{}: {}", what, std::generic_category().message(errno))};
}

}  // namespace

Result<std::optional<std::string>> load_lines(const SmallFile& file) {
  std::ifstream stream(file.path, std::ios::binary);
  if (!stream) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<std::string>();
    return file_error("cannot open " + file.path);
  }
  std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  const std::size_t end = text.find('\n');
  const std::string_view first = std::string_view(text).substr(0, end);
  if (first.substr(0, file.heading.size()) != file.heading || end == std::string::npos) {
    return Error{ErrorCode::corrupted, fmt::format("{} is damaged: {}", file.path, file.remedy)};
  }
  if (first.substr(file.heading.size()) != kFormat) {
    return Error{ErrorCode::unsupported_format,
                 fmt::format("{} has format {}, this build knows {}: use a newer build", file.path,
                             first.substr(file.heading.size()), kFormat)};
  }
  text.erase(0, end + 1);
  return std::optional<std::string>(std::move(text));
}

Result<void> save_lines(const SmallFile& file, std::string_view lines) {
  const std::string text = fmt::format("{}{}\n{}", file.heading, kFormat, lines);
  const std::string fresh = file.path + ".new";
  {
    const storage::Descriptor written{
        ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, storage::kPrivateFileMode)};
    const bool whole = written.get() >= 0 && storage::write_all(written.get(), text) &&
                       ::fsync(written.get()) == 0;
    if (!whole) return file_error("cannot write " + fresh);
  }
  if (std::rename(fresh.c_str(), file.path.c_str()) != 0) {
    return file_error("cannot name " + file.path);
  }
  return storage::sync_folder(std::filesystem::path(file.path).parent_path().string());
}

}  // namespace leasehold::server
