// The settings that say who may connect, and how: for the table of settings.cc.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/server/settings.h>

#include <string>

namespace leasehold::server {

template <std::string net::PeerSecurity::*member>
Result<void> set_path(ServeSettings& settings, const std::string& text) {
  settings.node.peer_security.*member = text;
  return {};
}

Result<void> set_peer_protection(ServeSettings& settings, const std::string& text);
Result<void> set_peer_accept(ServeSettings& settings, const std::string& text);
Result<void> set_allow_plain_peers(ServeSettings& settings, const std::string& text);
Result<void> set_client_tls(ServeSettings& settings, const std::string& text);
Result<void> set_client_certs(ServeSettings& settings, const std::string& text);

}  // namespace leasehold::server
