// The links between the nodes, one per direction.
#pragma once

#include <leasehold/sim/world/world.h>
#include <leasehold/wire/peer_message.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::sim {

/// Carries messages, loses them, delays them, doubles them, and keeps old ones to play them again.
class SimNetwork {
 public:
  /// A message arrives at a node, which may be down, and may be taken.
  using Deliver =
      std::function<void(raft::NodeId to, const raft::Peer& from, wire::PeerMessage& message)>;
  /// Old frames kept per link for replays.
  static constexpr std::size_t kKeptFrames = 96;
  /// Answers to rounds with a number below this are kept, per link the newest to each.
  static constexpr std::size_t kKeptRounds = 256;

  explicit SimNetwork(World& world);
  void set_deliver(Deliver deliver) { deliver_ = std::move(deliver); }

  void send(const raft::Peer& from, raft::NodeId to, wire::PeerMessage message);
  /// Whether nothing gets through now.
  bool blocked(raft::NodeId from, raft::NodeId to) { return link(from, to).blocks > 0; }
  /// Cuts may overlap: a link is whole when each cut of it has ended. What is under way when the
  /// newest cut begins is lost with the given chance.
  void block(raft::NodeId from, raft::NodeId to, std::uint64_t in_flight_loss_percent);
  void unblock(raft::NodeId from, raft::NodeId to);
  /// Old frames arrive again, after a while.
  void replay(std::size_t frames);

  /// A message of Raft that is under way. `number` counts those that `from` has sent, from 1 on.
  struct Flight {
    raft::NodeId from;
    raft::NodeId to;
    std::uint64_t number = 0;
    TrueInstant arrival;
    const raft::Message* message = nullptr;  ///< until the network is used again
  };
  /// From now on somebody chooses messages: those that are sent later can be found under way.
  void keep_flights() { keeps_flights_ = true; }
  /// By sender, then by number.
  std::vector<Flight> flights() const;
  std::optional<Flight> flight(raft::NodeId from, std::uint64_t number) const;
  /// How many messages of Raft the node has sent.
  std::uint64_t sent_by(raft::NodeId from) const { return sent_[from.value() - 1]; }
  /// These three are for flights: it is lost at once; it arrives later, and others overtake it; a
  /// copy arrives this much later than it, and is no flight.
  void lose(const Flight& flight);
  void hold(const Flight& flight, Duration longer);
  void repeat(const Flight& flight, Duration later);
  /// Every cut, loss, delay and replay ends. Messages under way may still arrive late.
  void heal();

 private:
  struct Sent {
    raft::Peer from;
    wire::PeerMessage message;
    std::uint64_t number = 0;  ///< of the flight, if it is one
  };
  /// Never changed while it may still be delivered elsewhere.
  using Frame = std::shared_ptr<Sent>;
  struct Link {
    int blocks = 0;
    std::uint64_t in_flight_loss_percent = 0;
    TrueInstant last_arrival;
    std::vector<Frame> kept;
    /// By the number of the round: of appends, and of the chunks of snapshots.
    std::vector<Frame> append_answers;
    std::vector<Frame> chunk_answers;
  };
  Link& link(raft::NodeId from, raft::NodeId to);
  void keep(Link& on, const Frame& frame);
  void keep_answer(Link& on, const Frame& frame);
  void echo(raft::NodeId leader, raft::NodeId peer, const wire::PeerMessage& lost);
  void carry(Link& on, raft::NodeId from, raft::NodeId to, Frame frame);
  void carry_copy(raft::NodeId from, raft::NodeId to, Frame frame);
  void carry_until(TrueInstant arrival, raft::NodeId from, raft::NodeId to, Frame frame);
  void arrive(raft::NodeId from, raft::NodeId to, Frame frame, bool replayed);
  bool is_due(raft::NodeId from, std::uint64_t number);

  struct Flying {
    raft::NodeId to;
    TrueInstant arrival;
    Frame frame;
  };
  using FlightKey = std::pair<raft::NodeId, std::uint64_t>;

  World& world_;
  const std::size_t nodes_;
  Random random_;
  Random echo_random_;
  Deliver deliver_;
  std::vector<Link> links_;
  bool keeps_flights_ = false;
  std::vector<std::uint64_t> sent_;
  std::map<FlightKey, Flying> flights_;
};

}  // namespace leasehold::sim
