// A leader's view of one peer.
#pragma once

#include <leasehold/base/ring.h>
#include <leasehold/lease/beat.h>
#include <leasehold/lease/rounds.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::raft {

/// How entries are sent to a peer.
enum class ProgressState : std::uint8_t {
  probe,  ///< where the logs agree is not known: one message at a time, answered before the next
  replicate,  ///< known: messages are pipelined, next_index runs ahead of the acknowledgements
  snapshot,   ///< the peer needs entries that are gone: heartbeats only, until it has a snapshot
};

/// A sent message with entries that the peer has not acknowledged.
struct Inflight {
  Index last;
  std::size_t bytes = 0;
};

/// Where a peer's promise rests on the one between the processes.
struct BoundPromise {
  Uuid directory;
  lease::Epoch epoch;
  friend bool operator==(const BoundPromise&, const BoundPromise&) = default;
};

struct Progress {
  /// The peer is a witness. Its kind never changes.
  bool witness = false;
  ProgressState state = ProgressState::probe;
  /// The peer's durable prefix that equals this log. Invariant: match_index < next_index.
  Index match_index;
  /// The first entry to send next.
  Index next_index{1};
  /// No entries until the next round or the next acknowledgement: a probe is out, or the driver had
  /// nothing to send. In state `snapshot`: no other snapshot until the peer says that it still
  /// needs one.
  bool paused = false;
  /// Sent in state `replicate`. Invariant: ascending; at most CoreOptions::inflight_messages_max.
  Ring<Inflight> inflights;
  std::size_t inflight_bytes = 0;
  /// The one open intent, of entries or, in state `snapshot`, of a snapshot; 0 when there is none.
  std::uint64_t intent = 0;
  /// The round in which the last sending of a snapshot ended. The peer may hold by now what it
  /// lacked before: only a refusal of a newer round, or of none, asks for another snapshot.
  Round snapshot_ended;
  /// The newest commit index that was sent, and the newest round at that time.
  Index sent_commit;
  Round sent_commit_in;
  /// A commit index that the peer knows: it has answered an append of a round after
  /// sent_commit_in. Invariant: at most match_index.
  Index known_commit;
  /// When a newer commit index has to be sent, unless an append carries it before; never() when
  /// there is none.
  PromiseInstant news_due = PromiseInstant::never();
  /// Until then a newer commit index is sent at once.
  PromiseInstant listens_until = PromiseInstant::earliest();
  /// The newest round that the peer has acknowledged with a promise. Empty at each election and for
  /// a new member: an acknowledgement never comes from a default.
  std::optional<lease::RoundStart> acked_round;

  /// Where groups share promises: at which epoch, and in which directory, the peer has bound its
  /// promise in this term. As with rounds, never from a default.
  std::optional<BoundPromise> bound;
  /// It may have been asked to bind, so it has to be released.
  bool bind_asked = false;
  /// The round that begins needs nothing of it: set by who begins that round, and false between
  /// rounds.
  bool rests = false;
  /// When a message of the group came from it, or this leader began to send to it.
  PromiseInstant heard;

  /// The leader has to find again where the logs agree, from the acknowledged index on, but not
  /// below `base`, where the log begins. Forgets the messages in flight and cancels the open
  /// intent.
  void become_probe(Index base);
  /// Where the logs agree is known: everything after match_index may be pipelined.
  void become_replicate();
  /// The peer needs entries at or below `base`, where the log begins: heartbeats are at the base
  /// until one of them matches. If the peer is in this state already, `base` has moved forward, and
  /// a snapshot that is being sent continues.
  void become_snapshot(Index base);
  /// The peer holds everything up to `index` durably. True if that is new.
  bool acknowledged(Index index);
};

/// What a leader knows of each node that receives its log, in the order of their ids. Used like a
/// std::map, but in one piece of memory: each acknowledgement looks at all of them several times.
class Peers {
 public:
  using Entry = std::pair<NodeId, Progress>;
  using iterator = std::vector<Entry>::iterator;
  using const_iterator = std::vector<Entry>::const_iterator;

  iterator begin() { return entries_.begin(); }
  iterator end() { return entries_.end(); }
  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }
  std::size_t size() const { return entries_.size(); }

  iterator find(NodeId id);
  const_iterator find(NodeId id) const;
  bool contains(NodeId id) const { return find(id) != end(); }
  /// Of a node that is in it, which is asserted.
  const Progress& at(NodeId id) const;
  /// Its entry, and whether it is a new one. A new one ends all iterators and references.
  std::pair<iterator, bool> add(NodeId id);
  /// Returns what follows it. Ends the iterators and references of all that follow.
  iterator erase(iterator entry) {
    ++changes_;
    return entries_.erase(entry);
  }
  /// Rises with each node that comes or goes.
  std::uint64_t changes() const { return changes_; }

 private:
  /// Invariant: ids rise.
  std::vector<Entry> entries_;
  std::uint64_t changes_ = 0;
};

}  // namespace leasehold::raft
