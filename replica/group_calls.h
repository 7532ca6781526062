// Pending calls about the group itself: changes of its members or settings, and transfers of the
// leadership. Only the leader accepts them.
#pragma once

#include <leasehold/replica/driver_context.h>

#include <cstddef>
#include <map>
#include <optional>
#include <variant>

namespace leasehold::replica {

/// A call is answered by what this node sees happen, and never sent to another node: the caller
/// knows best whether it still wants the call when another node leads.
class GroupCalls {
 public:
  explicit GroupCalls(DriverContext& context) : context_(context) {}

  void change(lease::Now now, ChangeMembers& event);
  void change_settings(lease::Now now, ChangeSettings& event);
  void transfer_leadership(lease::Now now, TransferLeadership& event);

  /// An event of the core, in order.
  void on_event(const raft::Event& event);
  /// After the effects of a turn: answers the calls that are done, and those whose outcome this
  /// node can no longer learn.
  void look();

  void expired(std::uint64_t number);
  void cancelled(CallGroup group);
  void complete_all();

  bool waits(std::uint64_t number) const {
    return changes_.count(number) != 0 || transfers_.count(number) != 0;
  }
  std::size_t size() const { return changes_.size() + transfers_.size(); }

 private:
  struct Change {
    CallGroup group;
    std::variant<ChangeCompletion, SettingsCompletion> done;
    raft::Term term;        ///< of the leadership that accepted it
    raft::Membership goal;  ///< complete when it is the newest, and committed
  };
  struct Transfer {
    CallGroup group;
    TransferCompletion done;
    raft::Term term;
    bool left = false;  ///< this node leads no more; the new leader is not known yet
  };

  void await(raft::PromiseInstant deadline, Change change);
  void finish(std::map<std::uint64_t, Change>::iterator call, GroupCallStatus status);
  void finish(std::map<std::uint64_t, Transfer>::iterator call, GroupCallStatus status);
  bool settled() const;

  DriverContext& context_;
  std::uint64_t last_number_ = 0;
  /// Invariant: at most one of each leadership, because the core takes one at a time.
  std::map<std::uint64_t, Change> changes_;
  std::map<std::uint64_t, Transfer> transfers_;
};

}  // namespace leasehold::replica
