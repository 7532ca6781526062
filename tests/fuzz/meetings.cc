#include <leasehold/base/assert.h>
#include <leasehold/tests/fuzz/meetings.h>
#include <leasehold/tls/certificates.h>
#include <leasehold/tls/group_key.h>

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace leasehold::fuzz {
namespace {

using net::PeerSecurity;
using net::Protection;

template <class T>
T made(Result<T> result) {
  if (!result.ok()) std::fputs(result.error().message.c_str(), stderr);
  LEASEHOLD_ASSERT(result.ok());
  return std::move(result).value();
}

/// Ends with its content.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "leasehold-XXXXXX").string();
    LEASEHOLD_ASSERT(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Files and contexts are made once, and the files are not read again.
class World {
 public:
  World() {
    made(tls::make_authority(path("ca"), kCluster, false));
    made(tls::make_authority(path("other"), kCluster, false));
    const tls::NodeName node{kCluster, kNode, "-"};
    const PeerSecurity two = certified("ca", node, "node2");
    const PeerSecurity revoked = certified("ca", tls::NodeName{kCluster, 3, "-"}, "node3");
    const PeerSecurity stranger = certified("other", node, "node2");
    const auto alice = client("ca", "alice");
    LEASEHOLD_ASSERT(tls::revoke_certificate(path("ca"), revoked.certificate_file).ok());
    PeerSecurity one = certified("ca", tls::NodeName{kCluster, 1, "-"}, "node1");
    one.revoked_file = path("ca") + "/crl.pem";
    const PeerSecurity key = keyed("key", 'a');
    const PeerSecurity other_key = keyed("other-key", 'b');
    PeerSecurity both = one;
    both.accept_key = true;
    both.key_file = key.key_file;

    const auto by_certificate = guard(one);
    const auto by_key = guard(key);
    const auto by_both = guard(both);
    node_guard_ = by_certificate;
    const std::string name = made(tls::read_group_keys(key.key_file)).front().name();
    const tls::CertificateFiles serves{one.certificate_file, one.certificate_key_file,
                                       one.authority_file, ""};
    const auto shows =
        made(tls::Context::be_client({alice.certificate, alice.key, one.authority_file, ""}));
    const auto shows_none = made(tls::Context::be_client({"", "", one.authority_file, ""}));
    const auto wants = made(tls::Context::serve_clients(serves, tls::ClientCertificates::required));
    const auto asks = made(tls::Context::serve_clients(serves, tls::ClientCertificates::optional));
    meetings_ = {
        {guard(two)->dialling(), by_certificate->accepting(), true, "", node},
        {by_key->dialling(), by_key->accepting(), true, name, {}},
        {guard(two)->dialling(), by_both->accepting(), true, "", node},
        {by_key->dialling(), by_both->accepting(), true, name, {}},
        {guard(other_key)->dialling(), by_key->accepting(), false, "", {}},
        {guard(other_key)->dialling(), by_both->accepting(), false, "", {}},
        {guard(stranger)->dialling(), by_certificate->accepting(), false, "", {}},
        {guard(revoked)->dialling(), by_certificate->accepting(), false, "", {}},
        {guard(two)->dialling(), by_key->accepting(), false, "", {}},
        {by_key->dialling(), by_certificate->accepting(), false, "", {}},
        {shows, wants, true, "", tls::UserName{kCluster, "alice"}},
        {shows, asks, true, "", tls::UserName{kCluster, "alice"}},
        {shows_none, asks, true, "", {}},
        {shows_none, wants, false, "", {}},
        {shows, by_certificate->accepting(), false, "", {}},
    };
    // A fuzzer that is stopped would leave it.
    folder_.reset();
  }

  const Meeting& meeting(unsigned number) const { return meetings_[number % meetings_.size()]; }
  const net::PeerGuard& node_guard() const { return *node_guard_; }

 private:
  std::string path(const std::string& name) const { return folder_->path(name); }
  static net::GuardPtr guard(const PeerSecurity& security) {
    return made(net::PeerGuard::load(security));
  }
  PeerSecurity certified(const std::string& authority, const tls::NodeName& name,
                         const std::string& stem) const {
    const auto files =
        made(tls::make_certificate(path(authority), name, {}, 30, path(authority), stem, false));
    PeerSecurity security;
    security.dial = Protection::certificate;
    security.certificate_file = files.certificate;
    security.certificate_key_file = files.key;
    security.authority_file = path(authority) + "/ca.pem";
    return security;
  }
  tls::MadeFiles client(const std::string& authority, const std::string& name) const {
    return made(tls::make_certificate(path(authority), tls::UserName{kCluster, name}, {}, 30,
                                      path(authority), name, false));
  }
  PeerSecurity keyed(const std::string& name, char digit) const {
    PeerSecurity security;
    security.dial = Protection::key;
    security.key_file = path(name);
    std::ofstream(security.key_file) << std::string(64, digit);
    LEASEHOLD_ASSERT(::chmod(security.key_file.c_str(), 0600) == 0);
    return security;
  }

  std::optional<Folder> folder_{std::in_place};
  std::vector<Meeting> meetings_;
  net::GuardPtr node_guard_;
};

const World& world() {
  static const World one;
  return one;
}

}  // namespace

const Meeting& meeting_of(unsigned number) {
  return world().meeting(number);
}

const net::PeerGuard& node_guard() {
  return world().node_guard();
}

}  // namespace leasehold::fuzz
