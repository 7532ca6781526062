// Clients that work in sessions: they number their writes and repeat each, at any node, until it is
// answered.
#pragma once

#include <leasehold/check/history.h>
#include <leasehold/replica/driver.h>
#include <leasehold/sim/judge/oracles.h>
#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace leasehold::sim {

/// A write is one operation of the history, from its first send to its first answer, however often
/// it was sent. It is given up, and may or may not have happened, only when its session is gone;
/// and now and then, when its only send was certainly not executed.
class SessionClients {
 public:
  /// `on_written` gets each write that was answered, the node that answered, and the key.
  SessionClients(World& world, std::vector<SimNode*> nodes, Oracles& oracles,
                 std::function<void(const SimNode&, std::uint64_t key)> on_written);

  void start();
  /// The process of `node` died: the clients that wait for it lose their connection.
  void node_died(const SimNode& node);

  /// Writes that are not answered yet. Once the faults have ended, no client begins a write.
  std::size_t unanswered() const;
  std::vector<check::Operation> history() const;
  /// The values of writes that certainly never happened.
  std::vector<std::uint64_t> refused_values() const;
  /// All but `expired`.
  const SessionCounts& counts() const { return counts_; }

 private:
  using Ticket = std::size_t;  ///< of a write or of an attempt
  enum class Outcome : std::uint8_t { pending, done, refused, unknown };

  struct Client {
    replica::SessionId session;  ///< 0: none
    std::uint64_t last_sequence = 0;
    bool opening = false;
    /// In the order of their sequences.
    std::vector<Ticket> outstanding;
    bool turn_waits = false;
  };
  struct Write {
    check::Operation operation;
    std::size_t client = 0;
    replica::SessionId session;
    std::uint64_t sequence = 0;
    Outcome outcome = Outcome::pending;
    std::uint64_t sends = 0;
    std::uint64_t waits_for = 0;  ///< attempts that have not ended
    std::uint64_t last_node = 0;
    bool repeats = false;  ///< it is about to be sent again
  };
  /// One send of a write, or an attempt to open a session.
  struct Attempt {
    std::size_t client = 0;
    std::optional<Ticket> write;
    SimNode* node = nullptr;
    TrueInstant launched = TrueInstant();
    std::uint64_t life = 0;  ///< 0: still on its way
    bool ended = false;
    bool answered = false;
  };

  void turn_later(std::size_t client);
  void turn(std::size_t client);
  bool may_begin(const Client& client) const;
  void open(std::size_t client);
  void begin_write(std::size_t client);
  void send(Ticket write);
  void repeat(Ticket write);
  SimNode& draw_node(std::uint64_t last);
  void launch(Attempt attempt, Bytes command);
  void arrive(Ticket attempt, const Bytes& command);
  void on_result(Ticket attempt, const replica::ProposeResult& result);
  void on_opened(Ticket attempt, const replica::ProposeResult& result);
  void on_answer(Ticket attempt, const RegisterMachine::Answer& answer);
  void session_is_gone(std::size_t client);
  /// The attempt has ended without an answer.
  void end(Ticket attempt, bool dropped);
  void complete(Ticket write, const SimNode& node, bool repeated);
  void close(Ticket write, const SimNode& node, Outcome outcome);
  std::uint64_t answered_below(const Client& client) const;

  World& world_;
  std::vector<SimNode*> nodes_;
  Oracles& oracles_;
  std::function<void(const SimNode&, std::uint64_t key)> on_written_;
  Random random_;
  std::uint64_t last_value_ = std::uint64_t{1} << 40;
  std::vector<Client> clients_;
  std::vector<Write> writes_;
  std::vector<Attempt> attempts_;
  SessionCounts counts_;
};

}  // namespace leasehold::sim
