// What a running node does about its group's members: which nodes it dials and accepts, what it
// tells nodes that are not members, and changes that people ask for.
#pragma once

#include <leasehold/lease/clock.h>
#include <leasehold/node/group.h>
#include <leasehold/node/member_edit.h>
#include <leasehold/node/node_links.h>
#include <leasehold/replica/driver.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::node {

/// On the node's thread only. The membership is always the newest of the log (it counts from the
/// moment it is appended); no node is turned away before the membership without it is committed.
///
/// A node that this node's membership does not name may still be a member: added by entries that
/// this node lacks. So a hello says which membership its sender's log knows, by term and index, and
/// the newer one wins. Terms first: an entry that was replaced is of an older term than the one
/// that replaced it.
class Members {
 public:
  struct Self {
    raft::NodeId id;
    raft::Uuid uuid;
    std::string address;  ///< where peers reach this node, until a membership says it
    bool witness = false;
  };
  /// Of Node::change_members().
  struct Call {
    MemberEdits edits;
    std::optional<raft::MembershipId> expected;
    raft::PromiseInstant deadline;
    replica::CallGroup group;
    MembersCompletion done;
  };
  /// `feed` hands an event to the driver. `links` outlives this.
  /// `notice` takes sentences for the operator's log.
  Members(Self self, Links& links, std::function<void(replica::Event)> feed,
          std::function<void(const std::string&)> notice);

  /// Once a turn: a few comparisons when nothing changed.
  void look(const raft::Core& core, lease::Now now);
  /// The log names this node as a member that stays. Otherwise it accepts no calls: a node that
  /// waits to be added cannot answer them, and the callers of a node that leaves might never get an
  /// answer.
  bool seated() const { return seated_; }
  /// Set once this node has been removed, leads no more, and has had time to send its last
  /// messages: it then stops. Set at once when the group has it as a witness and it is not one, or
  /// the other way round.
  std::optional<Error> gone(lease::Now now) const;
  /// When look() and gone() are to be asked again, whatever happens.
  raft::PromiseInstant due() const;

  // The connections ask. A `core` that is null: the group has not formed.

  Result<void> accept_peer(const raft::Core& core, raft::NodeId peer, raft::Uuid uuid) const;
  std::optional<wire::Refusal> judge_stranger(const raft::Core* core,
                                              const wire::Hello& hello) const;
  std::optional<wire::Refusal> judge_introduction(const raft::Core* core,
                                                  const wire::Hello& hello) const;
  /// A peer says that this node is no member any more.
  void told_removed(const raft::Core& core, const net::Rejection& rejection, lease::Now now);

  /// Makes the change, at the leader. A node that is added without a uuid is asked for it first.
  void change(const raft::Core* core, Call call);
  /// The node stops: refuses the changes that still wait for uuids.
  void complete_all();

  /// Fills what NodeStatus says of the members.
  void describe(const raft::Core& core, NodeStatus& status) const;

 private:
  /// A change on its way to the driver.
  struct Change : Call {
    std::size_t asking = 0;  ///< uuids that are asked for
  };

  void follow(const raft::Core& core, raft::LogId place, bool settled, lease::Now now);
  void dismiss_removed(const raft::Membership& newest, lease::Now now);
  void ask_uuid(const std::shared_ptr<Change>& change, std::size_t edit);
  void learned(const std::shared_ptr<Change>& change, std::size_t edit, Result<wire::Hello> answer);
  void submit(const std::shared_ptr<Change>& change);
  std::optional<raft::ChangeRefused> unexpected(std::optional<raft::MembershipId> expected) const;
  std::optional<raft::NodeId> older_build(const MemberEdits& edits) const;
  void finish(const std::shared_ptr<Change>& change, MembersResult result);
  void leave(lease::Now now, raft::LogId place, const std::string& who);
  bool names_self(const raft::Membership& membership) const;
  void check_kind(const raft::Membership& newest);

  Self self_;
  Links& links_;
  std::function<void(replica::Event)> feed_;
  std::function<void(const std::string&)> notice_;
  /// Of the driver that runs; set by look().
  const raft::Core* core_ = nullptr;
  /// The membership that was acted upon last.
  std::optional<raft::LogId> place_;
  bool settled_ = false;  ///< that membership is committed, and not joint
  bool leads_ = false;    ///< this node led when it looked last
  /// This node has been a member, as far as its log knows.
  bool was_member_ = false;
  bool seated_ = false;
  std::optional<Error> other_kind_;
  /// Invariant: set exactly while leaves_at_ is not never().
  std::string farewell_;
  raft::PromiseInstant leaves_at_ = raft::PromiseInstant::never();
  /// The nodes that were removed, and when this node closes the connection to each. Until then a
  /// removed node usually learns of its removal from its own log, and gets the outcome of the
  /// commands that it had sent: if the connection closed at once, these answers would be lost and
  /// the outcomes unknown.
  std::map<raft::NodeId, raft::PromiseInstant> removed_;
  std::vector<std::shared_ptr<Change>> changes_;
};

/// The newest membership of a log: where it stands.
raft::LogId membership_place(const raft::Core& core);

}  // namespace leasehold::node
