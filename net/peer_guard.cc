#include <leasehold/net/peer_guard.h>

#include <leasehold/net/handshake.h>

#include <fmt/format.h>

#include <variant>
#include <vector>

namespace leasehold::net {

namespace {

wire::Refusal unproved(std::string reason) {
  return wire::Refusal{wire::RefusalCode::unproved, std::move(reason), wire::VersionRange{}};
}

tls::CertificateFiles files_of(const PeerSecurity& security) {
  return {security.certificate_file, security.certificate_key_file, security.authority_file,
          security.revoked_file};
}

}  // namespace

GuardPtr PeerGuard::plain() {
  static const GuardPtr guard(new PeerGuard(PeerSecurity{}));
  return guard;
}

Result<GuardPtr> PeerGuard::load(const PeerSecurity& security) {
  const std::shared_ptr<PeerGuard> guard(new PeerGuard(security));
  std::vector<tls::GroupKey> keys;
  if (security.accepts(Protection::key)) {
    if (security.key_file.empty()) {
      return Error{
          ErrorCode::invalid_argument,
          "peers are to be protected by a key, and no key file is given: make one with leasehold "
          "cert key, "
          "copy it to every node, and name it"};
    }
    auto read = tls::read_group_keys(security.key_file);
    if (!read.ok()) return read.error();
    keys = std::move(read).value();
  }
  const tls::CertificateFiles files = files_of(security);
  const bool certificates = security.accepts(Protection::certificate);
  if (security.dial == Protection::key) {
    auto made = tls::Context::dial_peers(keys.front());
    if (!made.ok()) return made.error();
    guard->dialling_ = std::move(made).value();
  } else if (security.dial == Protection::certificate) {
    auto made = tls::Context::dial_peers(files);
    if (!made.ok()) return made.error();
    guard->dialling_ = std::move(made).value();
  }
  if (certificates || !keys.empty()) {
    auto made = tls::Context::accept_peers(certificates ? &files : nullptr, std::move(keys));
    if (!made.ok()) return made.error();
    guard->accepting_ = std::move(made).value();
  }
  return GuardPtr(guard);
}

std::optional<wire::Refusal> PeerGuard::judge(const tls::Stream* stream, const wire::Hello& hello,
                                              const std::string& cluster) const {
  // A plain connection was judged when it began, and a key says nothing of who has it.
  if (stream == nullptr || !stream->peer_key().empty()) return std::nullopt;
  const auto* node =
      stream->peer_name() ? std::get_if<tls::NodeName>(&*stream->peer_name()) : nullptr;
  if (node == nullptr) {
    return unproved("the certificate names no node: make one with leasehold cert node");
  }
  if (node->cluster != cluster) {
    return unproved(
        fmt::format("the certificate is for a node of cluster '{}', and this is cluster '{}'",
                    node->cluster, cluster));
  }
  if (node->id != hello.from.value()) {
    return unproved(fmt::format(
        "the certificate is for node {}, and the hello is of node {}: give each node its own",
        node->id, hello.from.value()));
  }
  if (node->uuid != "-" && node->uuid != uuid_text(hello.uuid)) {
    return unproved(fmt::format(
        "the certificate is for the directory {} of node {}, and the hello is of {}: make a new "
        "one for the new directory",
        node->uuid, node->id, uuid_text(hello.uuid)));
  }
  return std::nullopt;
}

wire::Refusal PeerGuard::plain_refused() const {
  if (security_.accepts(Protection::plain)) {
    return unproved(
        "plain connections are for loopback, between processes of one user: protect the peers by "
        "a key or "
        "by certificates, or allow plain ones beyond loopback");
  }
  return unproved(
      "this node takes no plain connections: give the other one the group's key, or a certificate");
}

}  // namespace leasehold::net
