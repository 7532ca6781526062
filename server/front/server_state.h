// What all connections of one server share: settings, counters, and who is connected.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/lease/instant.h>
#include <leasehold/raft/types.h>
#include <leasehold/server/front/client_memory.h>
#include <leasehold/server/front/client_tls.h>
#include <leasehold/server/front/command_spec.h>
#include <leasehold/server/front/command_trace.h>
#include <leasehold/server/front/counters.h>
#include <leasehold/server/front/live_settings.h>
#include <leasehold/server/front/read_policy.h>
#include <leasehold/server/front/replica_number.h>
#include <leasehold/server/front/scan_cursors.h>
#include <leasehold/server/front/script_cache.h>
#include <leasehold/server/front/slow_log.h>
#include <leasehold/server/users/accounts.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::node {
class Tracer;
}

namespace leasehold::server {

/// Of the records in front of the store's files.
struct ReadCacheUse {
  std::uint64_t bytes = 0;
  std::uint64_t evicted = 0;  ///< records that went for others, so far
};

struct ServerOptions {
  /// After this long a write ends as unknown or not executed, and a read as refused.
  lease::Duration command_timeout = std::chrono::seconds(5);
  /// Off: reads in mode lease are confirmed by a quorum, even under a valid lease. For machines
  /// whose clocks cannot be trusted.
  bool lease_reads = true;
  /// This node has no state: what touches the store is refused.
  bool witness = false;
  /// Client connections at a time.
  std::size_t clients_max = 10000;
  /// Threads for connections that are proven; there is one more, for all others. See TcpFront.
  std::size_t io_threads = 1;
  /// So long one of them looks for more to do before it sleeps; zero: not at all.
  lease::Duration busy_poll{0};
  /// A connection without a request for this time is closed; zero: never.
  lease::Duration idle_timeout{0};
  /// A connection whose first request is not complete this long after its first byte is closed;
  /// zero: never.
  lease::Duration first_request_timeout = std::chrono::seconds(60);
  /// Only connections from this machine are taken while the default user has no password.
  bool protected_mode = true;
  /// Connections that are taken in a second; more wait to be taken. 0: no limit.
  std::uint64_t connection_rate = 2000;
  /// Bytes of unfinished requests, of commands under way and of replies that are not sent, over all
  /// connections. See client_memory.h.
  std::size_t client_memory_max = std::size_t{256} << 20U;
  /// Commands that take at least this time are kept for SLOWLOG; zero: none.
  lease::Duration slowlog_threshold = std::chrono::milliseconds(10);
  std::string advertise;  ///< this node's client address, as status shows it
  /// Client addresses of the nodes, as far as they are known, for CLUSTER and ROLE.
  std::map<raft::NodeId, std::string> client_addresses;
  /// This node has many groups: then members have the numbers of replicas (replica_number.h).
  bool many_groups = false;
  /// Name of the group: users in certificates are of it.
  std::string cluster = "default";
  /// How clients connect. Its context is read by serve(), and again with reload().
  ClientTls::Mode client_tls = ClientTls::Mode::off;
  tls::ClientCertificates client_certificates = tls::ClientCertificates::optional;
  /// Reads certificates and keys again, and says in one sentence what is in force. Any thread; may
  /// read files. Empty: there are none.
  std::function<Result<std::string>()> reload;
  /// Of a node with many groups: the node knows another one from now on. Any thread; may write
  /// files. Empty: there are no others than the members.
  std::function<Result<void>(raft::NodeId node, const std::string& address)> add_host;
  /// The clocks by which this node judges leases and promises. Any thread. Empty: it tells none.
  std::function<lease::Now()> clocks;
  /// Names the machine, as its kernel does until the next boot. Empty: not known.
  std::string machine;
  /// Any thread.
  std::function<ReadCacheUse()> read_cache = [] { return ReadCacheUse(); };
  /// Of a node with many groups: somebody says which nodes have a replica of a group, from 1 on.
  /// Any thread. Empty: there is one group.
  std::function<Result<void>(std::size_t group, const std::vector<raft::NodeId>& nodes)> hear_place;
  /// So many replicas a group had at its beginning; 0: one at each node.
  std::size_t replicas = 0;
  /// From the next line of the operator's log on; one of kLogLevels. Any thread. Empty: nobody
  /// keeps a log.
  std::function<void(const std::string& level)> set_log_level;
  /// What INFO says of a recovery from a lost majority, name and value.
  std::vector<std::pair<std::string, std::string>> recovery{{"recovered", "no"}};
  /// The part of the commands that have a span, from now on. Any thread. Empty: none have one.
  std::function<void(double)> set_spans_ratio;
  /// Any thread.
  std::function<SpanCounts()> spans = [] { return SpanCounts(); };
  /// Takes sentences for the operator's log. May be empty.
  std::function<void(const std::string&)> notice;
  /// What CONFIG GET shows, name and value.
  std::vector<std::pair<std::string, std::string>> config;

  /// Of a member of a group.
  raft::NodeId node_of(raft::NodeId member) const {
    return many_groups ? server::node_of(member) : member;
  }
};

/// Which connections CLIENT LIST or CLIENT KILL mean; what is not set means any.
struct ClientFilter {
  std::optional<std::uint64_t> id;
  std::optional<std::uint64_t> not_id;
  std::string address;
};

/// The connections of this node. Any thread; the answer comes on another one.
class ClientDirectory {
 public:
  virtual ~ClientDirectory() = default;
  virtual void list(ClientFilter filter, std::function<void(std::string lines)> done) = 0;
  /// Closes them; the one of `asker` after its replies.
  virtual void kill(ClientFilter filter, std::uint64_t asker,
                    std::function<void(std::size_t)> done) = 0;
};

/// Made before the first connection. The counters of thread `i` are written by that thread alone.
struct ServerState {
  /// `context`: of the client port; null only if options.client_tls is off.
  ServerState(ServerOptions server_options, const CommandTable& command_table,
              tls::ContextPtr context = nullptr)
      : options(std::move(server_options)),
        commands(command_table),
        accounts(command_table),
        client_tls(options.client_tls, std::move(context)),
        counters(1 + options.io_threads),
        live(options.clients_max, options.idle_timeout, options.slowlog_threshold),
        client_memory(options.client_memory_max) {}

  /// Constant, but for `config`: config_mutex guards it.
  ServerOptions options;
  std::mutex config_mutex;
  const CommandTable& commands;
  Accounts accounts;
  ClientTls client_tls;
  std::vector<Counters> counters;
  LiveSettings live;  ///< as long as the node runs they count, and not those of the options
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> next_client_id{1};
  std::atomic<std::size_t> clients{0};
  std::atomic<std::size_t> tls_clients{0};  ///< of the clients
  std::atomic<std::size_t> watchers{0};     ///< of the clients
  std::atomic<std::size_t> subscribers{0};  ///< of the clients
  std::atomic<std::size_t> input_bytes{0};  ///< of all connections' input buffers
  ClientMemory client_memory;
  SlowLog slow_log;
  ScanCursors scan_cursors;
  ScriptCache scripts;
  node::Tracer* tracer = nullptr;            ///< set before the first connection; null: none
  ClientDirectory* clients_known = nullptr;  ///< set before the first connection
  std::uint16_t port = 0;  ///< of the client listener; set before the first connection
  std::atomic<std::int64_t> next_ttl_warning{0};   ///< of the coarse clock: not before
  std::atomic<std::int64_t> next_http_warning{0};  ///< of the coarse clock: not before
  std::atomic<std::int64_t> next_tls_warning{0};   ///< of the coarse clock: not before
  /// The users are at least as new as a read that was justified since the start. Until then a write
  /// waits for such a read: this node may have missed that the group was closed.
  std::atomic<bool> users_known{true};
  std::atomic<bool> asking_for_users{false};
  /// The node is about to stop: commands that touch the store are refused.
  std::atomic<bool> draining{false};
  /// At a witness: the number of a member that can answer what it refuses; 0: none is known.
  std::atomic<std::uint64_t> full_member{0};

  /// Rises when the users change, and when this node has learned the newest ones; above 0.
  std::uint64_t newest_users(const kv::Users& users) const {
    return 2 * users.changes() + (users_known.load(std::memory_order_relaxed) ? 1 : 0);
  }
  /// One counter, summed over all threads.
  std::uint64_t sum(Count Counters::*counter) const {
    std::uint64_t total = 0;
    for (const Counters& of_thread : counters) total += (of_thread.*counter).value();
    return total;
  }
};

}  // namespace leasehold::server
