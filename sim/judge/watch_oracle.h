// The events that watchers of the keys receive.
#pragma once

#include <leasehold/grant/lease_table.h>
#include <leasehold/kv/events.h>
#include <leasehold/raft/types.h>
#include <leasehold/sim/world/lease_cells.h>
#include <leasehold/sim/world/world.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::sim {

/// Judges, by the name that a violation carries:
///   watch                 a watcher of the keys gets a revision twice, early, out of order or
///                         otherwise than it was committed; or a key went with its lease, and its
///                         event does not say so
class WatchOracle {
 public:
  explicit WatchOracle(World& world) : world_(world) {}

  /// Around the execution of a committed command, in the order of the log.
  void before(std::string_view command, const LeaseCells& cells);
  void after(raft::LogId id, const LeaseCells& cells, std::vector<kv::Revision> told);

  // Each watcher keeps a copy of the keys, made from the events that it gets.
  using Copy = std::map<std::string, std::string, std::less<>>;
  /// It has read the keys as they were at `revision`, and goes on behind it.
  void resynced(std::uint64_t watcher, std::uint64_t revision, const Copy& copy);
  /// `copy`: with the events of `revision`.
  void told(std::uint64_t watcher, const kv::Revision& revision, const Copy& copy);

  std::uint64_t resyncs() const { return resyncs_; }
  std::uint64_t revisions_told() const { return revisions_told_; }

 private:
  /// What a revision was, when it was committed.
  struct Committed {
    kv::Revision revision;
    std::uint64_t digest = 0;  ///< of all keys and values
  };
  /// The keys of the leases that the command is about to end, and how it would.
  struct Ending {
    kv::EventKind kind = kv::EventKind::expired;
    grant::LeaseId lease;
  };
  void note_endings(grant::LeaseId id, kv::EventKind kind, const LeaseCells& cells);
  void check_events(raft::LogId id, const LeaseCells& cells, const std::vector<kv::Revision>& told);
  void check_copy(std::uint64_t watcher, std::uint64_t revision, const Copy& copy);

  World& world_;
  std::map<std::string, Ending> endings_;
  /// Invariant: the revision at i is i + 1.
  std::vector<Committed> committed_;
  /// By watcher: the newest revision that it knows.
  std::map<std::uint64_t, std::uint64_t> seen_;
  std::uint64_t resyncs_ = 0;
  std::uint64_t revisions_told_ = 0;
};

}  // namespace leasehold::sim
