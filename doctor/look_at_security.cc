#include <leasehold/doctor/gather.h>
#include <leasehold/net/peer_guard.h>
#include <leasehold/tls/certificates.h>
#include <leasehold/tls/context.h>

namespace leasehold::doctor {
namespace {

CertificateFacts look_at(const char* name, const std::string& path) {
  CertificateFacts facts;
  facts.name = name;
  facts.path = path;
  const auto read = tls::read_certificate(path);
  if (!read) {
    facts.problem = read.error().message;
    return facts;
  }
  facts.says = read.value().name;
  facts.ends = read.value().not_after;
  facts.days_left = read.value().days_left;
  return facts;
}

}  // namespace

SecurityFacts look_at_security(const server::ServeSettings& settings) {
  SecurityFacts facts;
  const net::PeerSecurity& security = settings.node.peer_security;
  if (const auto guard = net::PeerGuard::load(security); !guard) facts.peers = guard.error();
  if (security.certificate_file.empty()) return facts;
  facts.certificates.push_back(look_at("--tls-cert", security.certificate_file));
  facts.certificates.push_back(look_at("--tls-ca", security.authority_file));
  const tls::CertificateFiles files{security.certificate_file, security.certificate_key_file,
                                    security.authority_file, security.revoked_file};
  const auto clients = tls::Context::serve_clients(files, settings.server.client_certificates);
  if (!clients) facts.clients = clients.error();
  if (const auto chain = tls::check_chain(files); !chain) facts.chain = chain.error();
  return facts;
}

}  // namespace leasehold::doctor
