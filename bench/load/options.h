// What `leasehold bench` was asked for.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/bench/load/mix.h>
#include <leasehold/client/access.h>
#include <leasehold/client/resp_client.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::bench {

/// Which servers the operations go to, by the layout that the servers tell (CLUSTER SLOTS).
enum class Route : std::uint8_t {
  leader,    ///< of the key's group
  follower,  ///< a node of the key's group that does not lead it
  any,       ///< every server that was named, in turn
};

struct LoadOptions {
  std::vector<std::string> servers;  ///< host:port
  bool etcd = false;                 ///< they are members of etcd, not servers of Redis's protocol
  client::Access access;
  client::Login login;

  std::string
      workload;  ///< for people; `mix` is what it means. Empty: get, or ycsb-a of a smoke run
  Mix mix;
  std::optional<Distribution> distribution;  ///< none: that of the mix
  std::string read_mode;  ///< of LEASEHOLD READMODE, or of etcd; empty: none is asked for
  std::optional<Route> wanted_route;  ///< none: that of the read mode
  Route route = Route::leader;

  bool smoke = false;      ///< a run of some seconds with few keys: that everything works
  std::uint64_t keys = 0;  ///< 0: 100,000, fewer of large values
  std::size_t value_bytes = 256;
  std::uint64_t connections = 0;  ///< 0: one for each request under way, 64 at most
  std::uint64_t pipeline = 0;     ///< requests under way on a connection; 0: by `in_flight`
  std::uint64_t in_flight = 0;    ///< on all; 0: by `pipeline`; open loop: at most
  std::uint64_t rate = 0;         ///< operations due a second; 0: closed loop
  double duration_s = 0;          ///< of what counts; 0: ten seconds
  double warm_up_s = -1;          ///< before it; below 0: two seconds
  bool load = true;               ///< write every key first; never for pure writes
  std::uint64_t seed = 1;
  std::string json;               ///< a file; empty: none
  std::string hdr;                ///< the same
  std::string history;            ///< the same, of the operations on the first keys
  std::uint64_t judged_keys = 0;  ///< those; 0: the usual number, or all if there are fewer
  bool quiet = false;

  bool open() const { return rate > 0; }
  bool recorded() const { return !history.empty(); }
  Distribution chosen_distribution() const { return distribution.value_or(mix.distribution); }
};

/// The two read modes of etcd.
inline constexpr const char* kLinearizable = "linearizable";
inline constexpr const char* kSerializable = "serializable";

inline constexpr std::uint64_t kInFlightMax = 4096;
inline constexpr std::size_t kValueBytesMin = 16;
inline constexpr std::size_t kValueBytesMax = std::size_t{1} << 20U;
/// Of the requests under way, in bytes of values: they are kept in memory until they are sent.
inline constexpr std::uint64_t kBytesInFlightMax = std::uint64_t{1} << 30U;

// Errors of all of these: invalid_argument.

/// "512", "16k", "1M": bytes, or a number of anything.
Result<std::uint64_t> parse_amount(const std::string& text);
/// lease, quorum, log, follower, or stale=BOUND ("stale=500ms"); of etcd: linearizable or
/// serializable.
Result<void> take_read_mode(const std::string& text, LoadOptions& options);
/// get, set, or ycsb-a to ycsb-f.
Result<void> take_workload(const std::string& text, LoadOptions& options);
/// uniform, zipf or latest.
Result<void> take_distribution(const std::string& text, LoadOptions& options);
/// leader, follower or any.
Result<void> take_route(const std::string& text, LoadOptions& options);
/// Checks what belongs together, and sets what was left open. Call it once, last.
Result<void> settle(LoadOptions& options);

}  // namespace leasehold::bench
