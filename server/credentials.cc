#include <leasehold/server/credentials.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/tls/certificates.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdint>
#include <utility>

namespace leasehold::server {

namespace {

/// A certificate that ends within this time is warned of, and how often.
constexpr std::int64_t kDaysSoon = 30;
constexpr std::chrono::hours kLookPause{24};

bool has_certificate(const ServeSettings& settings) {
  return !settings.node.peer_security.certificate_file.empty();
}

}  // namespace

Result<tls::ContextPtr> Credentials::load_for_clients(const ServeSettings& settings) {
  if (settings.server.client_tls == ClientTls::Mode::off) return tls::ContextPtr();
  const net::PeerSecurity& files = settings.node.peer_security;
  return tls::Context::serve_clients({files.certificate_file, files.certificate_key_file,
                                      files.authority_file, files.revoked_file},
                                     settings.server.client_certificates);
}

Result<std::string> Credentials::read_again() {
  const net::PeerSecurity& files = settings_.node.peer_security;
  if (files.dial == net::Protection::plain && !has_certificate(settings_)) {
    return std::string("this node has neither certificates nor a key: nothing to read again");
  }
  auto clients = load_for_clients(settings_);
  if (!clients) return clients.error();
  if (auto peers = node_.reload_peer_security(); !peers) return peers.error();
  if (clients.value() != nullptr) clients_.replace(std::move(clients).value());
  if (!has_certificate(settings_)) return std::string("the group's key was read again");
  const auto facts = tls::read_certificate(files.certificate_file);
  if (!facts) return facts.error();
  return fmt::format(
      "certificates and keys were read again: this node's certificate is valid until {} UTC",
      facts.value().not_after);
}

Result<std::string> Credentials::reload() {
  const std::lock_guard lock(mutex_);
  Result<std::string> read = read_again();
  if (read) {
    spdlog::info("{}", read.value());
  } else {
    spdlog::error("certificates and keys stay as they were: {}", read.error().message);
  }
  return read;
}

void Credentials::look() {
  if (!has_certificate(settings_)) return;
  const std::chrono::microseconds now = wall_now();
  if (looked_.count() != 0 && now >= looked_ && now - looked_ < kLookPause) return;
  looked_ = now;
  const std::string& file = settings_.node.peer_security.certificate_file;
  const auto facts = tls::read_certificate(file);
  if (!facts) return spdlog::warn("{}", facts.error().message);
  const std::int64_t days = facts.value().days_left;
  if (days >= kDaysSoon) return;
  if (days < 0) {
    spdlog::error(
        "the certificate {} ended on {} UTC: no peer and no client believes this node. Make "
        "another (leasehold cert node), then send this process SIGHUP",
        file, facts.value().not_after);
  } else {
    spdlog::warn(
        "the certificate {} ends in {} day{}, on {} UTC: make another (leasehold cert node), then "
        "send this process SIGHUP",
        file, days, days == 1 ? "" : "s", facts.value().not_after);
  }
}

}  // namespace leasehold::server
