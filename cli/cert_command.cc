#include <leasehold/cli/commands.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/net/handshake.h>
#include <leasehold/server/front/words.h>
#include <leasehold/storage/folder.h>
#include <leasehold/tls/certificates.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

constexpr const char* kCertText = R"(
Makes what nodes and clients prove themselves by.

  leasehold cert key FILE             a key that all members of a group share
  leasehold cert init --cluster NAME [--nodes N=H,...]
                                      an authority of the group's own: ca.pem, ca-key.pem, crl.pem;
                                      and the certificates of these nodes
  leasehold cert node --id N --host H[,H...]
                                      a node's certificate: node-N.pem and node-N-key.pem. H are the
                                      names and addresses at which clients reach it
  leasehold cert client --user NAME   a user's certificate: client-NAME.pem and client-NAME-key.pem
  leasehold cert revoke FILE          puts a certificate on the list crl.pem; then give the list to
                                      every node
  leasehold cert show FILE            what a certificate says

A node gets its own certificate and key, ca.pem and crl.pem (serve --tls-cert, --tls-key, --tls-ca,
--tls-crl). Keep ca-key.pem away from the nodes: who has it can be any of them.
With --data-dir or --uuid the certificate is for that directory only: a node that was wiped needs
a new one.

Exit status: 0 done, 1 not done, 2 a flag is wrong.)";

struct WantedCert {
  std::vector<std::string> words;
  std::string dir = ".";
  std::string out;  ///< empty: dir
  std::string cluster;
  std::string user;
  std::string uuid;
  std::string data_dir;
  std::optional<std::uint64_t> id;
  std::vector<std::string> hosts;
  std::vector<std::pair<std::uint64_t, std::string>> nodes;  ///< each with its host
  int days = tls::kCertificateDays;
  bool force = false;
};

int report(const Result<tls::MadeFiles>& made) {
  if (!made.ok()) return fail("cert", made.error().message, kNo);
  std::cout << "made " << made.value().certificate << " and " << made.value().key << "\n";
  return 0;
}

/// The uuid of a data directory; `-` if it has none yet.
Result<std::string> uuid_of(const std::string& data_dir, std::uint64_t id) {
  const std::string path = fmt::format("{}/log/{}", data_dir, storage::kMarkName);
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return std::string(tls::kAnyUuid);
  std::ifstream file(path, std::ios::binary);
  if (!file || error) {
    return Error{ErrorCode::io,
                 fmt::format("cannot read {}: run this as the user that the node runs as, or give "
                             "--uuid",
                             path)};
  }
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto mark = storage::decode_mark(bytes);
  if (!mark.ok())
    return Error{mark.error().code, fmt::format("{}: {}", path, mark.error().message)};
  if (mark.value().id.value() != id) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} is the directory of node {}, not of node {}", data_dir,
                             mark.value().id.value(), id)};
  }
  return net::uuid_text(mark.value().uuid);
}

int make_node(const WantedCert& wanted) {
  if (!wanted.id) return misused("cert", "node needs --id: the number of the node");
  if (wanted.hosts.empty()) {
    return misused("cert", "node needs --host: the names and addresses at which clients reach it");
  }
  if (!wanted.uuid.empty() && !wanted.data_dir.empty()) {
    return misused("cert", "--uuid and --data-dir: choose one");
  }
  const auto cluster = tls::authority_cluster(wanted.dir);
  if (!cluster.ok()) return fail("cert", cluster.error().message, kNo);
  tls::NodeName name{cluster.value(), *wanted.id, std::string(tls::kAnyUuid)};
  if (!wanted.uuid.empty()) name.uuid = wanted.uuid;
  if (!wanted.data_dir.empty()) {
    const auto uuid = uuid_of(wanted.data_dir, *wanted.id);
    if (!uuid.ok()) return fail("cert", uuid.error().message, kNo);
    name.uuid = uuid.value();
  }
  return report(tls::make_certificate(wanted.dir, name, wanted.hosts, wanted.days, wanted.out,
                                      fmt::format("node-{}", *wanted.id), wanted.force));
}

int make_authority(const WantedCert& wanted) {
  if (wanted.cluster.empty())
    return misused("cert", "init needs --cluster: the name of the nodes' --cluster");
  int status = report(tls::make_authority(wanted.dir, wanted.cluster, wanted.force));
  for (const auto& [id, host] : wanted.nodes) {
    if (status != 0) break;
    const tls::NodeName name{wanted.cluster, id, std::string(tls::kAnyUuid)};
    status = report(tls::make_certificate(wanted.dir, name, {host}, wanted.days, wanted.out,
                                          fmt::format("node-{}", id), wanted.force));
  }
  return status;
}

/// A file's name, which holds the user's.
bool fits_a_file(const std::string& user) {
  return !user.empty() && user.front() != '.' && user.find('/') == std::string::npos;
}

int make_client(const WantedCert& wanted) {
  if (wanted.user.empty()) return misused("cert", "client needs --user: the name of the user");
  if (!fits_a_file(wanted.user))
    return misused("cert", "--user: a name of a file, too: no slash in it");
  const auto cluster = tls::authority_cluster(wanted.dir);
  if (!cluster.ok()) return fail("cert", cluster.error().message, kNo);
  return report(tls::make_certificate(wanted.dir, tls::UserName{cluster.value(), wanted.user},
                                      wanted.hosts, wanted.days, wanted.out,
                                      "client-" + wanted.user, wanted.force));
}

int show(const std::string& path) {
  const auto facts = tls::read_certificate(path);
  if (!facts.ok()) return fail("cert", facts.error().message, kNo);
  std::cout << fmt::format(
      "name     {}\nserial   {}\nfrom     {} UTC\nuntil    {} UTC ({} days left)\n",
      facts.value().name.empty() ? "none of Leasehold" : facts.value().name, facts.value().serial,
      facts.value().not_before, facts.value().not_after, facts.value().days_left);
  return facts.value().days_left < 0 ? kNo : 0;
}

int run(WantedCert& wanted) {
  if (wanted.words.empty())
    return misused("cert", "expected init, node, client, revoke, show or key");
  if (wanted.out.empty()) wanted.out = wanted.dir;
  const std::string what = wanted.words.front();
  const bool of_file = what == "revoke" || what == "show" || what == "key";
  if (of_file && wanted.words.size() != 2) return misused("cert", what + " needs one file");
  if (!of_file && wanted.words.size() != 1) return misused("cert", what + " takes flags only");
  if (what != "init" && !wanted.nodes.empty()) return misused("cert", "--nodes is for init");
  if (what == "init") return make_authority(wanted);
  if (what == "node") return make_node(wanted);
  if (what == "client") return make_client(wanted);
  if (what == "show") return show(wanted.words[1]);
  if (what == "revoke") {
    const auto revoked = tls::revoke_certificate(wanted.dir, wanted.words[1]);
    if (!revoked.ok()) return fail("cert", revoked.error().message, kNo);
    std::cout << "revoked: give " << wanted.dir << "/crl.pem to every node\n";
    return 0;
  }
  if (what == "key") {
    const auto made = tls::make_group_key(wanted.words[1], wanted.force);
    if (!made.ok()) return fail("cert", made.error().message, kNo);
    std::cout << "made " << wanted.words[1] << ": copy it to every node, and keep it secret\n";
    return 0;
  }
  return misused("cert",
                 fmt::format("'{}' is none of init, node, client, revoke, show and key", what));
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

/// N=HOST,...
Result<void> read_nodes(const std::string& text, WantedCert& wanted) {
  for (const std::string& part : split_at_commas(text)) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || equals + 1 == part.size()) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("'{}' is not NUMBER=HOST, as in 1=node1.example.org", part)};
    }
    const auto id = parse_node_number(part.substr(0, equals));
    if (!id.ok()) return id.error();
    const auto same = [&](const auto& node) { return node.first == id.value(); };
    if (std::any_of(wanted.nodes.begin(), wanted.nodes.end(), same)) {
      return Error{ErrorCode::invalid_argument, fmt::format("node {} is there twice", id.value())};
    }
    wanted.nodes.emplace_back(id.value(), part.substr(equals + 1));
  }
  return {};
}

}  // namespace

Run add_cert(Flags& flags) {
  const auto wanted = std::make_shared<WantedCert>();
  flags.add_words(wanted->words, "init|node|client|revoke|show|key [FILE] [OPTIONS]");
  flags.add({"--dir", "DIR", "Folder of the authority", "."}, wanted->dir);
  flags.add({"--out", "DIR", "Where the certificate and its key go, if not to --dir"}, wanted->out);
  flags.add({"--cluster", "NAME", "Of init: the cluster, as in serve --cluster"}, wanted->cluster);
  flags.add({"--nodes", "N=HOST,...", "Of init: nodes that get a certificate at once"},
            [wanted](const std::string& text) { return read_nodes(text, *wanted); });
  flags.add({"--id", "N", "Of node: its number"},
            [wanted](const std::string& text) -> Result<void> {
              const auto id = parse_node_number(text);
              if (!id.ok()) return id.error();
              wanted->id = id.value();
              return {};
            });
  flags.add({"--host", "HOST,...", "Of node: where clients reach it"},
            [wanted](const std::string& text) -> Result<void> {
              wanted->hosts = split_at_commas(text);
              return {};
            });
  flags.add({"--uuid", "UUID", "Of node: good for this data directory only"}, wanted->uuid);
  flags.add({"--data-dir", "DIR", "Of node: the same, read from the directory if it is not new"},
            wanted->data_dir);
  flags.add({"--user", "NAME", "Of client: the user that it is"}, wanted->user);
  flags.add({"--days", "N", "How long the certificate is good", "365"},
            [wanted](const std::string& text) -> Result<void> {
              const auto days = server::parse_integer(text);
              if (!days || *days < 1 || *days > tls::kDaysMax) {
                return Error{
                    ErrorCode::invalid_argument,
                    fmt::format("'{}' is not a number of days from 1 to {}", text, tls::kDaysMax)};
              }
              wanted->days = static_cast<int>(*days);
              return {};
            });
  flags.add({"--force", "", "Replace files that exist"}, wanted->force);
  flags.set_footer(kCertText);
  return [wanted] { return run(*wanted); };
}

}  // namespace leasehold::cli
