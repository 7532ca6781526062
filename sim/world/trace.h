// What happened, in order: a hash over all of it, and the newest lines for a reader.
#pragma once

#include <leasehold/raft/event.h>
#include <leasehold/sim/world/event_queue.h>
#include <leasehold/wire/peer_message.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::sim {

enum class TraceKind : std::uint8_t {
  sent,
  lost,
  delivered,
  raft_event,
  published,
  synced,
  applied,
  started,
  crashed,
  failed,
  paused,
  suspended,
  resumed,
  blocked,
  unblocked,
  rates_changed,
  replayed,
  healed,
  invoked,
  returned,
  space,
  machine_durable,
  snapshot_taken,
  chunk_stored,
  installed,
};

/// One line. What the numbers mean depends on the kind; see Trace::format().
struct TraceLine {
  TrueInstant at;
  TraceKind kind = TraceKind::sent;
  std::uint64_t node = 0;
  std::uint64_t numbers[5] = {0, 0, 0, 0, 0};
};

class Recorder;

/// One seed has one hash under every compiler and build type: the lines hold nothing but integers
/// that the simulation computed.
class Trace {
 public:
  Trace(const EventQueue& queue, std::size_t tail) : queue_(queue), tail_max_(tail) {}

  void add(TraceKind kind, std::uint64_t node, std::uint64_t a = 0, std::uint64_t b = 0,
           std::uint64_t c = 0, std::uint64_t d = 0, std::uint64_t e = 0);
  /// A message, seen from `node`; `peer` is the other end.
  void add_message(TraceKind kind, raft::NodeId node, raft::NodeId peer,
                   const wire::PeerMessage& message);
  void add_event(const raft::Event& event);
  /// Also sends everything to `recorder`, which does not change the hash.
  void set_recorder(Recorder* recorder) { recorder_ = recorder; }

  std::uint64_t hash() const { return hash_; }
  /// The newest lines, oldest first, for a person.
  std::vector<std::string> tail() const;

 private:
  static std::string format(const TraceLine& line);
  void mix(std::uint64_t number) {
    hash_ = (hash_ ^ number) * 0x9e3779b97f4a7c15U;
    hash_ ^= hash_ >> 29;
  }

  const EventQueue& queue_;
  const std::size_t tail_max_;
  Recorder* recorder_ = nullptr;
  std::uint64_t hash_ = 0x6c65617365;
  std::uint64_t count_ = 0;
  std::size_t next_ = 0;
  /// A ring: line n stands at n % tail_max_, and the next one at next_.
  std::vector<TraceLine> lines_;
};

/// "12.345678901 s".
std::string format_instant(TrueInstant at);

}  // namespace leasehold::sim
