// The admin port: HTTP for monitors and for people who look at a node.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/server/admin/admin_routes.h>
#include <leasehold/server/front/served_groups.h>
#include <leasehold/server/front/server_state.h>

#include <cstdint>
#include <memory>

namespace leasehold::server {

/// One thread, which does nothing until somebody connects. A connection is one request. Whatever
/// comes is bounded: the connections, of which one that has not asked yet makes room for a new one;
/// the length of a request; and the time of each part. So one that is slow holds a place for some
/// seconds and no thread.
///
/// On loopback all who reach the port are answered, with TLS or without. Beyond it a client needs
/// TLS and the certificate of a user of this cluster, as long as AdminOptions::open does not say
/// otherwise: there are no passwords here.
class AdminPort {
 public:
  static constexpr std::size_t kConnectionsMax = 32;
  static constexpr std::size_t kHeadBytesMax = std::size_t{16} << 10U;
  static constexpr std::chrono::seconds kRequestTimeMax{5};
  static constexpr std::chrono::seconds kAnswerTimeMax{10};

  /// All but `options` outlive it, and the groups have been stopped before its end, or are still
  /// there. Errors: invalid_argument (the address; or it is beyond loopback and unprotected), io
  /// (it cannot be bound); each says what to do.
  static Result<std::unique_ptr<AdminPort>> open(const AdminOptions& options,
                                                 const ServedGroups& groups, ServerState& state,
                                                 const AdminSources& sources);
  /// Closes every connection and ends the thread.
  ~AdminPort();
  AdminPort(const AdminPort&) = delete;
  AdminPort& operator=(const AdminPort&) = delete;

  std::uint16_t port() const;

 private:
  class Impl;
  explicit AdminPort(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold::server
