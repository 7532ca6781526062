// What the admin port answers: which path, for whom, and with what.
#pragma once

#include <leasehold/server/admin/admin_counts.h>
#include <leasehold/server/admin/event_counts.h>
#include <leasehold/server/admin/http_engine.h>
#include <leasehold/server/admin/looks.h>
#include <leasehold/server/front/served_groups.h>
#include <leasehold/server/front/server_state.h>
#include <leasehold/storage/sync_times.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold::server {

/// What is counted outside of the groups and of the clients.
struct AdminSources {
  const EventCounts& events;
  const storage::SyncTimes& syncs;
};

struct AdminOptions {
  std::string listen;    ///< host:port; port 0: the system chooses one
  bool open = false;     ///< all who reach the port are answered, also beyond loopback
  std::string data_dir;  ///< of whose disk the space is shown
  /// Admin ports of the nodes: the page asks them, and a page of theirs may read the status here.
  std::map<raft::NodeId, std::string> addresses = {};
};

/// One thread at a time, except for what it reads of its arguments. All outlive it.
class AdminRoutes {
 public:
  /// `loopback`: only this machine reaches the port. Then a request has to name it by an address,
  /// or as localhost, or as --admin does: a page of the web that made a name of its own lead here
  /// (DNS rebinding) cannot read what it gets.
  AdminRoutes(AdminOptions options, bool loopback, const ServedGroups& groups,
              const ServerState& state, const AdminSources& sources, AdminCounts& counts)
      : options_(std::move(options)),
        loopback_(loopback),
        groups_(groups),
        state_(state),
        sources_(sources),
        counts_(counts) {}

  HttpAnswer answer(const HttpRequest& request, const Look& look);

 private:
  bool is_foreign(std::string_view host) const;
  HttpAnswer metrics(const HttpRequest& request, const Look& look) const;
  HttpAnswer status(const HttpRequest& request, const Look& look) const;
  HttpAnswer page() const;
  bool may_read(const std::string& origin) const;

  const AdminOptions options_;
  const bool loopback_;
  const ServedGroups& groups_;
  const ServerState& state_;
  const AdminSources sources_;
  AdminCounts& counts_;
};

}  // namespace leasehold::server
