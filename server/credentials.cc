#include <leasehold/server/credentials.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/tls/validity.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdint>
#include <ctime>
#include <utility>

namespace leasehold::server {

namespace {

/// A certificate that ends within this time is warned of, and how often.
constexpr std::chrono::hours kEndsSoon{30 * 24};
constexpr std::chrono::hours kLookPause{24};

/// "2027-01-31 12:00:00 UTC"
std::string date_text(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[64];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

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
  const auto end = tls::certificate_end(files.certificate_file);
  if (!end) return end.error();
  return fmt::format(
      "certificates and keys were read again: this node's certificate is valid until {}",
      date_text(end.value()));
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
  const auto end = tls::certificate_end(file);
  if (!end) return spdlog::warn("{}", end.error().message);
  const auto left = std::chrono::seconds(end.value()) - now;
  if (left > kEndsSoon) return;
  const auto days = std::chrono::duration_cast<std::chrono::hours>(left).count() / 24;
  if (left.count() < 0) {
    spdlog::error(
        "the certificate {} ended on {}: no peer and no client believes this node. Make "
        "another (leasehold cert node), then send this process SIGHUP",
        file, date_text(end.value()));
  } else {
    spdlog::warn(
        "the certificate {} ends in {} day{}, on {}: make another (leasehold cert node), "
        "then send this process SIGHUP",
        file, days, days == 1 ? "" : "s", date_text(end.value()));
  }
}

}  // namespace leasehold::server
