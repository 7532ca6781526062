// The file RETIRED is text, so that a person can read it:
//
//   leasehold-retired 1
//   cluster 16 hex digits
//   plan 16 hex digits
//   check 8 hex digits       CRC32C of all lines but this one
//
// and behind an empty line the report.
#include <leasehold/base/assert.h>
#include <leasehold/node/node_retired.h>
#include <leasehold/storage/descriptor.h>
#include <leasehold/storage/private_folder.h>
#include <leasehold/wire/crc32c.h>

#include <fmt/format.h>

#include <fcntl.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <system_error>

namespace leasehold::node {
namespace {

constexpr unsigned kRetiredFormat = 1;
constexpr std::string_view kRetiredHeading = "leasehold-retired ";
constexpr const char* kRetiredName = "/RETIRED";
constexpr std::size_t kRetiredBytesMax = kRetiredReportBytesMax + 1024;

std::uint64_t hex_behind(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  std::uint64_t number = 0;
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + name.size());
  static_cast<void>(std::from_chars(text.data(), text.data() + text.size(), number, 16));
  return number;
}

Error cannot(const std::string& what, int code) {
  return {ErrorCode::io, fmt::format("cannot {}: {}", what, std::generic_category().message(code))};
}

}  // namespace

std::string encode_retired(const Retired& retired) {
  LEASEHOLD_ASSERT(retired.report.size() <= kRetiredReportBytesMax);
  const std::string head = fmt::format("{}{}\ncluster {:016x}\nplan {:016x}\n", kRetiredHeading,
                                       kRetiredFormat, retired.cluster_id, retired.plan);
  const std::string tail = "\n" + retired.report;
  return fmt::format("{}check {:08x}\n{}", head, wire::crc32c(head + tail), tail);
}

Result<Retired> decode_retired(const std::string& text) {
  std::uint64_t format = 0;
  if (std::string_view(text).starts_with(kRetiredHeading)) {
    const char* const begin = text.data() + kRetiredHeading.size();
    static_cast<void>(std::from_chars(begin, text.data() + text.size(), format));
  }
  if (format != kRetiredFormat && format != 0) {
    return Error{ErrorCode::unsupported_format,
                 fmt::format("it has format {}, this build knows {}: use a newer build", format,
                             kRetiredFormat)};
  }
  Retired retired;
  const std::size_t head_ends = text.find("\n\n");
  retired.cluster_id = hex_behind(text, "\ncluster ");
  retired.plan = hex_behind(text, "\nplan ");
  if (head_ends != std::string::npos) retired.report = text.substr(head_ends + 2);
  // The lines above are lenient; this accepts only the exact text that encode_retired() writes.
  if (format == 0 || retired.report.size() > kRetiredReportBytesMax ||
      encode_retired(retired) != text) {
    return Error{ErrorCode::corrupted,
                 "it is damaged, and its existence alone says that this directory's group was "
                 "given up: start no node here"};
  }
  return retired;
}

Result<std::optional<Retired>> load_retired(const std::string& data_dir) {
  const std::string path = data_dir + kRetiredName;
  const storage::Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<Retired>();
    return cannot("open " + path, errno);
  }
  std::string text(kRetiredBytesMax, '\0');
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  if (length < 0) return cannot("read " + path, errno);
  text.resize(static_cast<std::size_t>(length));
  auto retired = decode_retired(text);
  if (!retired.ok()) {
    return Error{retired.error().code, fmt::format("{}: {}", path, retired.error().message)};
  }
  return std::optional<Retired>(std::move(retired).value());
}

Result<void> retire(const std::string& data_dir, const Retired& retired) {
  const std::string path = data_dir + kRetiredName;
  const std::string fresh = path + ".new";
  {
    const storage::Descriptor file{
        ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, storage::kPrivateFileMode)};
    if (file.get() < 0 || !storage::write_all(file.get(), encode_retired(retired)) ||
        ::fsync(file.get()) != 0) {
      return cannot("write " + fresh, errno);
    }
  }
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return cannot("name " + path, errno);
  return storage::sync_folder(data_dir);
}

Result<void> check_not_retired(const std::string& data_dir) {
  const auto retired = load_retired(data_dir);
  if (!retired.ok()) return retired.error();
  if (!retired.value()) return {};
  return Error{
      ErrorCode::wrong_cluster,
      fmt::format(
          "{}: cluster {:016x} was given up by leasehold recover, and this directory is "
          "retired: no node may start on it. {}{} says what was kept; restore the recovered "
          "group to new directories",
          data_dir, retired.value()->cluster_id, data_dir, kRetiredName)};
}

}  // namespace leasehold::node
