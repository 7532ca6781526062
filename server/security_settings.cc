#include <leasehold/server/front/words.h>
#include <leasehold/server/security_settings.h>

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace leasehold::server {

namespace {

Result<net::Protection> parse_protection(std::string_view text) {
  if (text == "plain") return net::Protection::plain;
  if (text == "key") return net::Protection::key;
  if (text == "tls") return net::Protection::certificate;
  return invalid(fmt::format("{} is none of plain, key and tls", quoted(text)));
}

}  // namespace

Result<void> set_peer_protection(ServeSettings& settings, const std::string& text) {
  const auto protection = parse_protection(text);
  if (!protection) return protection.error();
  settings.node.peer_security.dial = protection.value();
  settings.peer_protection_given = true;
  return {};
}

Result<void> set_peer_accept(ServeSettings& settings, const std::string& text) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = rest.find(',');
    const auto protection = parse_protection(rest.substr(0, comma));
    if (!protection) return protection.error();
    net::PeerSecurity& security = settings.node.peer_security;
    switch (protection.value()) {
      case net::Protection::plain: security.accept_plain = true; break;
      case net::Protection::key: security.accept_key = true; break;
      case net::Protection::certificate: security.accept_certificate = true; break;
    }
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return {};
}

Result<void> set_client_tls(ServeSettings& settings, const std::string& text) {
  using Mode = ClientTls::Mode;
  if (text != "off" && text != "optional" && text != "on") {
    return invalid(quoted(text) + " is none of off, optional and on");
  }
  settings.server.client_tls = text == "on"         ? Mode::on
                               : text == "optional" ? Mode::optional
                                                    : Mode::off;
  settings.client_tls_given = true;
  return {};
}

Result<void> set_client_certs(ServeSettings& settings, const std::string& text) {
  using Wish = tls::ClientCertificates;
  if (text != "none" && text != "optional" && text != "required") {
    return invalid(quoted(text) + " is none of none, optional and required");
  }
  settings.server.client_certificates = text == "none"       ? Wish::none
                                        : text == "optional" ? Wish::optional
                                                             : Wish::required;
  return {};
}

Result<void> set_allow_plain_peers(ServeSettings& settings, const std::string& text) {
  if (text != "on" && text != "off") return invalid(quoted(text) + " is neither on nor off");
  settings.node.peer_security.plain_beyond_loopback = text == "on";
  return {};
}

}  // namespace leasehold::server
