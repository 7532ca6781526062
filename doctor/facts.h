// What was seen of a machine, its disk, its files and the other nodes, before anybody judges it.
// What could not be seen is none, or an empty text.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/doctor/drift.h>
#include <leasehold/lease/instant.h>
#include <leasehold/lease/timing.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::doctor {

/// A limit that is none.
inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

/// Of the files below /proc and /sys.
struct MachineFacts {
  std::string clock_source;
  std::string clock_sources;  ///< that the kernel offers, between spaces
  bool virtual_machine = false;
  std::optional<std::uint64_t> open_files_max;  ///< the hard limit: serve raises the soft one
  std::optional<std::uint64_t> map_count_max;
  std::optional<std::uint64_t> queue_max;   ///< net.core.somaxconn
  std::optional<std::uint64_t> overcommit;  ///< vm.overcommit_memory
  std::string huge_pages;                   ///< "always", "madvise" or "never"
  std::optional<std::uint64_t> swap_used_bytes;
  std::optional<std::uint64_t> memory_bytes;  ///< of the machine
  std::optional<std::uint64_t>
      memory_limit_bytes;                         ///< of the control group, the least of all above
  std::optional<double> cpu_quota;                ///< in processors
  std::optional<std::uint64_t> cpu_throttled;     ///< periods in which the group was stopped
  std::optional<std::uint64_t> stolen_per_mille;  ///< of the time of the measurement
};

struct ClockFacts {
  /// What the kernel says of its time of day (adjtimex); none: it does not.
  std::optional<bool> synchronised;
  double slewed_ppm = 0;                ///< how fast the kernel turns the clock now
  lease::Duration suspended_before{0};  ///< since the boot
  lease::Duration suspended_now{0};     ///< during the measurement
  /// What the VM clock device of the settings came to: "" if it is there, else why not.
  std::string vm_clock_problem;
  std::string watched;  ///< in MachineMarker's words
};

/// Of a thread that sleeps a millisecond at a time.
struct PauseFacts {
  std::uint64_t sleeps = 0;
  lease::Duration longest{0};  ///< beyond the millisecond
};

struct SyncFacts {
  std::size_t syncs = 0;
  lease::Duration p50{0};
  lease::Duration p99{0};
  lease::Duration longest{0};
  std::optional<Error> error;  ///< of the scratch file
};

struct DiskFacts {
  std::string folder;   ///< the data directory, or the folder above it that exists
  bool made = false;    ///< the data directory exists
  std::string kind;     ///< of the file system: "ext4"
  std::string options;  ///< of the mount, between commas
  bool rotating = false;
  std::optional<std::uint64_t> free_bytes;
  std::optional<SyncFacts> sync;  ///< none: it was left out
};

/// What the data directory holds.
struct FolderFacts {
  bool exists = false;
  std::string problem;  ///< why it cannot be used, beside what follows
  bool of_another_user = false;
  bool open_to_others = false;
  std::optional<Error> mark_error;  ///< of the log's mark
  std::optional<raft::NodeId> node;
  std::optional<std::uint64_t> cluster_id;
  std::optional<std::uint64_t> cluster_expected;  ///< by the settings
  std::optional<raft::Uuid> uuid;
  std::uint64_t locked_by = 0;  ///< a process; 0: none is known
};

enum class Reach : std::uint8_t {
  fine,  ///< it can be bound, or somebody answers
  no_such_name,
  not_here,  ///< no address of this machine
  taken,
  refused,  ///< by the machine: nobody listens
  silent,
  other,
};

struct AddressFacts {
  std::string name;  ///< of the setting: "--listen", "--peers"
  std::string address;
  bool own = false;   ///< this node's, to be bound; else others have to answer there
  bool peer = false;  ///< of the peer port
  bool loopback = false;
  raft::NodeId node;  ///< whose it is; kNobody: not known
  Reach reach = Reach::fine;
  std::string problem;  ///< in the system's words
};

struct CertificateFacts {
  std::string name;  ///< of the setting: "--tls-cert"
  std::string path;
  std::string problem;  ///< it cannot be read
  std::string says;     ///< the name in it
  std::string ends;     ///< "2026-11-25 08:00:00", UTC
  std::int64_t days_left = 0;
};

struct SecurityFacts {
  std::vector<CertificateFacts> certificates;
  std::optional<Error> peers;    ///< why no peer could be met with these files
  std::optional<Error> clients;  ///< the same of clients
  std::optional<Error> chain;    ///< why nobody would believe the certificate
};

/// A node that was asked at its client port.
struct ServerFacts {
  std::string server;
  std::string problem;  ///< it did not answer; then the rest is empty
  raft::NodeId node;
  std::string version;
  std::string uuid;
  std::string machine;
  std::string clock_problem;  ///< it does not tell its clocks
  std::vector<ClockSample> samples;
  std::optional<lease::Timing> timing;  ///< that it follows
  bool agreed = false;                  ///< that is the group's
  std::string node_problem;             ///< what it says of its own state
};

struct Facts {
  MachineFacts machine;
  ClockFacts clock;
  PauseFacts pause;
  DiskFacts disk;
  FolderFacts folder;
  std::vector<AddressFacts> addresses;
  SecurityFacts security;
  std::vector<ServerFacts> servers;
  std::string own_machine;  ///< as ServerFacts::machine
  std::string own_version;  ///< of this program
  lease::Duration measured{0};
};

}  // namespace leasehold::doctor
