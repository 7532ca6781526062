// The certificates and keys of a running node: read, read again, and looked at before they end.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/node.h>
#include <leasehold/server/front/client_tls.h>
#include <leasehold/server/settings.h>
#include <leasehold/tls/context.h>

#include <chrono>
#include <mutex>
#include <string>

namespace leasehold::server {

class Credentials {
 public:
  /// Of the client port; null without TLS. Errors: those of tls::Context.
  static Result<tls::ContextPtr> load_for_clients(const ServeSettings& settings);

  /// All outlive it.
  Credentials(const ServeSettings& settings, node::Node& node, ClientTls& clients)
      : settings_(settings), node_(node), clients_(clients) {}

  /// Reads all files again, for both ports: what is wrong with one leaves everything as it was.
  /// Logs the result, and returns it as one sentence. Any thread.
  Result<std::string> reload();
  /// Call it from time to time, one thread: warns at the start and then once a day of a certificate
  /// that ends soon.
  void look();

 private:
  Result<std::string> read_again();

  const ServeSettings& settings_;
  node::Node& node_;
  ClientTls& clients_;
  std::mutex mutex_;  ///< one reload at a time
  std::chrono::microseconds looked_{0};
};

}  // namespace leasehold::server
