#include <leasehold/server/credentials.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/tls/certificates.h>
#include <leasehold/tls/group_key.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace leasehold::server {

namespace {

/// A certificate that ends within this time is warned of, and how often.
constexpr std::int64_t kDaysSoon = 30;
constexpr std::chrono::hours kLookPause{24};

/// The settings that CONFIG GET shows, and that reload() may change.
constexpr std::array<std::string_view, 2> kShown{"peer-protection", "client-tls"};

/// How this node proves itself, and whom it takes, for the log.
Result<std::string> describe(const net::PeerSecurity& security) {
  std::string text = fmt::format("protection of peers: {}", net::name_of(security.dial));
  std::string also;
  for (const auto one :
       {net::Protection::plain, net::Protection::key, net::Protection::certificate}) {
    if (one != security.dial && security.accepts(one)) {
      also += fmt::format("{}{}", also.empty() ? "; also taken: " : " and ", net::name_of(one));
    }
  }
  text += also;
  if (security.accepts(net::Protection::key)) {
    const auto keys = tls::read_group_keys(security.key_file);
    if (!keys) return keys.error();
    text += fmt::format("; key {}", keys.value().front().name());
    for (std::size_t i = 1; i < keys.value().size(); ++i) {
      text += fmt::format("{}{}", i == 1 ? ", also taken: " : " and ", keys.value()[i].name());
    }
  }
  if (security.certificate_file.empty()) return text;
  const auto facts = tls::read_certificate(security.certificate_file);
  if (!facts) return facts.error();
  return fmt::format("{}; certificate {}, valid until {} UTC", text, facts.value().serial,
                     facts.value().not_after);
}

}  // namespace

Result<tls::ContextPtr> Credentials::load_for_clients(const ServeSettings& settings) {
  const net::PeerSecurity& files = settings.node.peer_security;
  // With a certificate, clients that came before the mode went off are still judged.
  if (files.certificate_file.empty()) return tls::ContextPtr();
  return tls::Context::serve_clients({files.certificate_file, files.certificate_key_file,
                                      files.authority_file, files.revoked_file},
                                     settings.server.client_certificates);
}

Result<std::string> Credentials::read_again() {
  ServeSettings fresh = settings_;
  if (settings_.read_again) {
    auto read = settings_.read_again();
    if (!read) return read.error();
    fresh = std::move(read).value();
  }
  const net::PeerSecurity& security = fresh.node.peer_security;
  // Protected mode relies on it, and was decided with the value of the start.
  fresh.server.client_certificates = settings_.server.client_certificates;
  auto clients = load_for_clients(fresh);
  if (!clients) return clients.error();
  auto text = describe(security);
  if (!text) return text.error();
  if (auto peers = protect_peers_(security); !peers) return peers.error();
  state_.client_tls.replace(fresh.server.client_tls, std::move(clients).value());
  now_ = security;
  show(fresh);
  return fmt::format("settings, certificates and keys were read again; {}", text.value());
}

void Credentials::show(const ServeSettings& settings) {
  const std::lock_guard lock(state_.config_mutex);
  for (auto& [name, value] : state_.options.config) {
    if (std::find(kShown.begin(), kShown.end(), name) == kShown.end()) continue;
    for (const auto& [fresh_name, fresh_value] : settings.server.config) {
      if (fresh_name == name) value = fresh_value;
    }
  }
}

Result<std::string> Credentials::reload() {
  const std::lock_guard lock(mutex_);
  Result<std::string> read = read_again();
  if (read) {
    spdlog::info("{}", read.value());
  } else {
    spdlog::error("settings, certificates and keys stay as they were: {}", read.error().message);
  }
  return read;
}

void Credentials::look() {
  const std::chrono::microseconds now = wall_now();
  if (looked_.count() != 0 && now >= looked_ && now - looked_ < kLookPause) return;
  looked_ = now;
  const std::string file = [this] {
    const std::lock_guard lock(mutex_);
    return now_.certificate_file;
  }();
  if (file.empty()) return;
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
