// What a core asks of the promises between its process and the others, which all groups of the
// process share (docs/decisions/0024).
#pragma once

#include <leasehold/lease/support.h>
#include <leasehold/lease/supporter.h>
#include <leasehold/raft/lease_classes.h>
#include <leasehold/raft/types.h>

namespace leasehold::raft {

/// Of one process; its cores and this are used by one thread. It outlives them. What it answers
/// changes between two inputs of a core only. A group has one core in the life of a process: the
/// next one would not know what the first has bound.
class SharedPromises {
 public:
  virtual ~SharedPromises() = default;

  // ---- What this process has promised to those of other nodes ----

  /// To the node of that directory; null if it has never sent a beat to this process. One that was
  /// there stays.
  virtual const lease::Support* support_of(const Uuid& holder) const = 0;
  /// See lease::Support::rely().
  virtual void rely(const Uuid& holder, PromiseInstant now) = 0;
  /// The longest D that earlier processes of this node may have promised to the node, under
  /// whatever directory it has had that number; zero if they have promised nothing.
  virtual Duration remembered(NodeId holder) const = 0;

  // ---- What the processes of other nodes have promised to this one ----

  virtual const lease::Beats& beats() const = 0;
  /// What the node of that directory has acknowledged; null if nothing.
  virtual const lease::Supporter* supporter(const Uuid& member) const = 0;

  // ---- Leases of leaders at rest ----

  /// The class of the leases with that basis, in which each voter has its present epoch. kNoClass:
  /// it is about to end, or there is none; the leader has to look by itself.
  virtual LeaseClassId join(const LeaseBasis& basis, HolderInstant now) = 0;
  /// One that a core of this process has joined.
  virtual const LeaseClass& lease_class(LeaseClassId id) const = 0;

  // ---- The groups of this process ----

  /// False: its disk, or a loop of groups, makes no progress. None of its groups leads meanwhile,
  /// or asks for votes.
  virtual bool healthy() const = 0;
  /// The group is about to ask for votes. False: it waits (Core::awaits_place()). For progress
  /// only.
  virtual bool take_place(GroupId group, PromiseInstant now) = 0;
};

}  // namespace leasehold::raft
