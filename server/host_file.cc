// The file is text, so that a person can read it:
//
//   leasehold-hosts 1
//   4=10.0.0.4:7101
//   5=10.0.0.5:7101
#include <leasehold/server/host_file.h>
#include <leasehold/server/settings.h>
#include <leasehold/storage/descriptor.h>
#include <leasehold/storage/private_folder.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

namespace leasehold::server {
namespace {

constexpr const char* kName = "/HOSTS";
constexpr std::string_view kHeading = "leasehold-hosts ";
constexpr std::string_view kFormat = "1";

Error system_error(const std::string& what) {
  return {ErrorCode::io, fmt::format("{}: {}", what, std::generic_category().message(errno))};
}

}  // namespace

Result<std::vector<node::Peer>> load_hosts(const std::string& data_dir) {
  const std::string path = data_dir + kName;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) return std::vector<node::Peer>();
    return system_error("cannot open " + path);
  }
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::size_t end = text.find('\n');
  const std::string_view first = std::string_view(text).substr(0, end);
  if (first.substr(0, kHeading.size()) != kHeading || end == std::string::npos) {
    return Error{ErrorCode::corrupted,
                 path + " is damaged: remove it, and add the nodes again (leasehold member add)"};
  }
  if (first.substr(kHeading.size()) != kFormat) {
    return Error{ErrorCode::unsupported_format,
                 fmt::format("{} has format {}, this build knows {}: use a newer build", path,
                             first.substr(kHeading.size()), kFormat)};
  }
  text.erase(0, end + 1);
  if (text.empty()) return std::vector<node::Peer>();
  if (text.back() == '\n') text.pop_back();
  for (char& c : text) {
    if (c == '\n') c = ',';
  }
  auto hosts = parse_peers(text);
  if (hosts) return hosts;
  return Error{ErrorCode::corrupted,
               fmt::format("{}: {}: mend the line, or remove the file and add the nodes again "
                           "(leasehold member add)",
                           path, hosts.error().message)};
}

Result<void> save_hosts(const std::string& data_dir, const std::vector<node::Peer>& hosts) {
  std::string text = fmt::format("{}{}\n", kHeading, kFormat);
  for (const node::Peer& host : hosts) {
    text += fmt::format("{}={}\n", host.id.value(), host.address);
  }
  const std::string path = data_dir + kName;
  const std::string fresh = path + ".new";
  {
    const storage::Descriptor file{
        ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, storage::kPrivateFileMode)};
    if (file.get() < 0 || !storage::write_all(file.get(), text) || ::fsync(file.get()) != 0) {
      return system_error("cannot write " + fresh);
    }
  }
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return system_error("cannot name " + path);
  return storage::sync_folder(data_dir);
}

}  // namespace leasehold::server
