// What a comparison consists of: who is measured, and doing what.
#pragma once

#include <leasehold/base/result.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace leasehold::bench {

/// What `leasehold bench compare` was asked for.
struct CompareOptions {
  std::string program;  ///< of the nodes: this very one
  std::string version;  ///< of it, for people
  std::string folder;   ///< where the data goes, in a folder of its own; empty: TMPDIR, or /tmp
  std::string json;     ///< a file; empty: none
  std::string html;     ///< the same
  std::vector<std::string> growth;  ///< connections, writers, values
  std::uint64_t sweeps = 0;         ///< 0: ten, or two of a smoke run
  double block_s = 0;               ///< 0: a second, or 0.2 s
  double warm_up_s = -1;            ///< of each block; below 0: a quarter of a block
  std::uint64_t keys = 0;           ///< 0: 10,000, or 1,000
  std::uint64_t value_bytes = 256;
  std::uint64_t seed = 1;
  bool smoke = false;  ///< that everything works: no figure means anything
  bool quiet = false;
};

/// Checks what belongs together, and sets what was left open. Errors: invalid_argument.
Result<void> settle(CompareOptions& options);

enum class System : std::uint8_t { leasehold, etcd, redis, redis_durable };

/// A system as one kind of client sees it.
struct Target {
  std::string id;       ///< "etcd-serializable"
  std::string name;     ///< "etcd, serializable reads"
  std::string promise;  ///< what a client may rely on
  System system = System::leasehold;
  std::string read_mode;
  std::size_t color = 0;  ///< on the page: below kColors
};

inline constexpr std::size_t kColors = 4;

/// One load, at each of its targets in turn.
struct Case {
  std::string id;    ///< "read-1"
  std::string name;  ///< "Reads, one after the other"
  bool writes = false;
  bool latency = false;  ///< what counts is how long one takes; else how many there are in a second
  std::uint64_t connections = 1;
  std::uint64_t in_flight = 1;
  std::uint64_t value_bytes = 256;
  std::string growth;   ///< the curve that it is a point of; empty: none
  std::uint64_t x = 0;  ///< where on it
  std::vector<std::size_t>
      targets;  ///< the first one is Leasehold's: the others are held against it
};

struct Plan {
  std::vector<Target> targets;
  std::vector<Case> cases;

  std::size_t blocks_of_sweep() const;
};

/// For the systems that are there. `options` is settled.
Plan plan_of(const CompareOptions& options, const std::set<System>& there);

/// How long it will take, about, with what has to be started and written.
double seconds_of(const Plan& plan, const CompareOptions& options);

/// "2 min 10 s".
std::string time_text(double seconds);

}  // namespace leasehold::bench
