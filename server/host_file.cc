// The file is text, so that a person can read it:
//
//   leasehold-hosts 1
//   4=10.0.0.4:7101
//   5=10.0.0.5:7101
#include <leasehold/server/host_file.h>
#include <leasehold/server/settings.h>
#include <leasehold/server/small_file.h>

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace leasehold::server {
namespace {

SmallFile hosts_file(const std::string& data_dir) {
  return {data_dir + "/HOSTS", "leasehold-hosts ",
          "remove it, and add the nodes again (leasehold member add)"};
}

}  // namespace

Result<std::vector<node::Peer>> load_hosts(const std::string& data_dir) {
  const SmallFile file = hosts_file(data_dir);
  auto lines = load_lines(file);
  if (!lines) return lines.error();
  std::string text = std::move(lines).value().value_or("");
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
                           file.path, hosts.error().message)};
}

Result<void> save_hosts(const std::string& data_dir, const std::vector<node::Peer>& hosts) {
  std::string lines;
  for (const node::Peer& host : hosts) {
    lines += fmt::format("{}={}\n", host.id.value(), host.address);
  }
  return save_lines(hosts_file(data_dir), lines);
}

}  // namespace leasehold::server
