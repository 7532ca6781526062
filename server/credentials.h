// Who may connect to a running node, and how: read, read again, and looked at before it ends.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/server/front/server_state.h>
#include <leasehold/server/settings.h>
#include <leasehold/tls/context.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

namespace leasehold::server {

class Credentials {
 public:
  /// Of the client port; null without a certificate. Errors: those of tls::Context.
  static Result<tls::ContextPtr> load_for_clients(const ServeSettings& settings);

  /// `protect_peers` does so by node::Node::set_peer_security() or node::Host's. All outlive this.
  using ProtectPeers = std::function<Result<void>(const net::PeerSecurity&)>;
  Credentials(const ServeSettings& settings, ProtectPeers protect_peers, ServerState& state)
      : settings_(settings),
        protect_peers_(std::move(protect_peers)),
        state_(state),
        now_(settings.node.peer_security) {}

  /// Reads the settings file and all certificates and keys again, for both ports: what is wrong
  /// with one leaves everything as it was. Of the settings, those of the protection of peers, the
  /// files and --client-tls count from now on; others wait for the next start. Logs the result, and
  /// returns it as one sentence. Any thread.
  Result<std::string> reload();
  /// Call it from time to time, one thread: warns at the start and then once a day of a certificate
  /// that ends soon.
  void look();

 private:
  Result<std::string> read_again();
  /// For CONFIG GET.
  void show(const ServeSettings& settings);

  const ServeSettings& settings_;
  const ProtectPeers protect_peers_;
  ServerState& state_;
  std::mutex mutex_;       ///< one reload at a time
  net::PeerSecurity now_;  ///< in force; guarded by mutex_
  std::chrono::microseconds looked_{0};
};

}  // namespace leasehold::server
