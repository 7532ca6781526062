// How a group forms, once: every initial member durably confirms one set of members, with one set
// of settings, and never another, and the group exists when all have confirmed the same.
//
// The member with the lowest id confirms first, once it knows the directories of all, and proposes
// its own settings with them; the others confirm what they get.
//
// Why so careful: a node that could vote with an empty directory could vote twice in one term, once
// before its disk was wiped and once after. A set names each member by its uuid, which is lost with
// the directory, so a wiped member cannot be mistaken for the one that confirmed.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/membership.h>
#include <leasehold/raft/types.h>
#include <leasehold/wire/peer_message.h>

#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

namespace leasehold::node {

/// What a group begins with.
struct InitialSet {
  std::vector<raft::Member> members;  ///< ascending by id
  /// None: by the proposal of a build that knows no settings.
  std::optional<raft::GroupSettings> settings{};
  friend bool operator==(const InitialSet&, const InitialSet&) = default;
};

/// Pure: inputs are what the node learns, outputs are what it has to do. Every message may be lost,
/// duplicated or late.
class Formation {
 public:
  /// Make this the confirmed set, durably, before acting on the next output.
  struct Confirm {
    InitialSet set;
    friend bool operator==(const Confirm&, const Confirm&) = default;
  };
  struct Send {
    raft::NodeId to;
    wire::FormationConfirm message;
    friend bool operator==(const Send&, const Send&) = default;
  };
  /// All members have confirmed: form the group, durably, before acting on the next output.
  struct Form {
    friend bool operator==(const Form&, const Form&) = default;
  };
  using Output = std::variant<Confirm, Send, Form>;

  /// Who speaks first to a member that comes later.
  enum class Manner {
    tells,  ///< the others, when it connects: a node has one group, which is there by then
    asks,   ///< it does, when it is there: a replica of a host
  };

  /// `proposed`: the initial members, this node (`self`, with `uuid`) among them, whose uuids are
  /// not known yet and ignored; and the settings that this node would choose. `confirmed` and
  /// `formed` are what the directory says.
  Formation(raft::NodeId self, raft::Uuid uuid, InitialSet proposed, InitialSet confirmed,
            bool formed, Manner manner = Manner::tells);

  /// Whether a peer that says it is `peer` under `uuid` may talk to this node. Errors:
  /// wrong_cluster, when another uuid was confirmed under that id.
  Result<void> judge(raft::NodeId peer, raft::Uuid uuid) const;
  /// A handshake has shown who `peer` is, and judge() has accepted it.
  void learned(raft::NodeId peer, raft::Uuid uuid);
  /// Errors: wrong_cluster. This directory can never be part of the group that `from` has
  /// confirmed; the message says why and what to do. Nothing has changed.
  Result<void> received(raft::NodeId from, const wire::FormationConfirm& message);
  /// Says again what this node has confirmed, to every member that may not know. Call it now and
  /// then while repeats(): messages are lost.
  void repeat();
  bool repeats() const { return !formed_ && !confirmed_.members.empty(); }

  /// Takes what there is to do, in order; the list is empty afterwards.
  std::vector<Output> take_outputs();

  bool formed() const { return formed_; }
  /// The initial members of which this node does not know that they have confirmed the set that it
  /// has confirmed itself; ascending.
  std::vector<raft::NodeId> missing() const;

 private:
  bool all_known() const;
  bool proposes() const;
  bool fits(const std::vector<raft::Member>& members) const;
  void confirm(InitialSet set);
  void send(raft::NodeId to);
  void maybe_form();
  void form();

  raft::NodeId self_;
  raft::Uuid uuid_;
  /// Ascending by id. The uuids of those in known_ are valid.
  std::vector<raft::Member> members_;
  std::optional<raft::GroupSettings> settings_;
  Manner manner_;
  std::set<raft::NodeId> known_;
  /// Without members, or the one set, which then never changes.
  InitialSet confirmed_;
  /// The members that have confirmed the same set, this node included.
  std::set<raft::NodeId> confirmed_by_;
  bool formed_ = false;
  std::vector<Output> outputs_;
};

}  // namespace leasehold::node
