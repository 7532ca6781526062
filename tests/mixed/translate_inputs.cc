// The inputs of a driver, and the answers to its calls.
#include "translate.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::mixed {
namespace {

using OldEvent = std::optional<old::node::Event>;

old::node::ProposeCompletion completion(replica::ProposeCompletion done) {
  if (!done) return nullptr;
  return [done = std::move(done)](old::node::ProposeResult from) {
    replica::ProposeResult result;
    result.status = static_cast<replica::ProposeStatus>(from.status);
    result.id = to_new(from.id);
    result.result = to_new(from.result);
    result.overloaded = from.overloaded;
    result.disk_full_at = number<raft::NodeId>(from.disk_full_at);
    result.leader = number<raft::NodeId>(from.leader);
    done(std::move(result));
  };
}

old::node::ReadCompletion completion(replica::ReadCompletion done) {
  if (!done) return nullptr;
  return [done = std::move(done)](old::node::ReadResult from) {
    replica::ReadResult result;
    if (from.index) result.index = number<raft::Index>(*from.index);
    result.basis = static_cast<raft::ReadBasis>(from.basis);
    result.overloaded = from.overloaded;
    result.leader = number<raft::NodeId>(from.leader);
    done(std::move(result));
  };
}

old::node::ChangeCompletion completion(replica::ChangeCompletion done) {
  if (!done) return nullptr;
  return [done = std::move(done)](old::node::ChangeResult from) {
    replica::ChangeResult result;
    result.status = static_cast<replica::GroupCallStatus>(from.status);
    if (from.refused) {
      raft::ChangeRefused refused;
      refused.obstacle = static_cast<raft::ChangeObstacle>(from.refused->obstacle);
      refused.member = number<raft::NodeId>(from.refused->member);
      refused.entries_behind = from.refused->entries_behind;
      result.refused = refused;
    }
    result.leader = number<raft::NodeId>(from.leader);
    done(std::move(result));
  };
}

old::node::HandOverCompletion completion(replica::TransferCompletion done) {
  if (!done) return nullptr;
  return [done = std::move(done)](old::node::HandOverResult from) {
    replica::TransferResult result;
    result.status = static_cast<replica::GroupCallStatus>(from.status);
    if (from.refused) {
      result.refused =
          raft::TransferRefused{static_cast<raft::TransferObstacle>(from.refused->obstacle),
                                number<raft::NodeId>(from.refused->node)};
    }
    result.leader = number<raft::NodeId>(from.leader);
    done(std::move(result));
  };
}

old::node::LogCutCompletion completion(replica::LogCutCompletion done) {
  if (!done) return nullptr;
  return [done = std::move(done)](old::Result<old::node::LogCut> from) {
    if (!from) return done(to_new(from.error()));
    const old::node::LogCut& cut = from.value();
    done(replica::LogCut{number<raft::Index>(cut.durable), number<raft::Index>(cut.first_before),
                         number<raft::Index>(cut.first), cut.bytes_before, cut.bytes});
  };
}

template <class To, class From, class Value>
old::Result<To> result_of(const Result<From>& from, const Value& value) {
  if (!from) return to_old(from.error());
  return value(from.value());
}

template <class Old, class Call>
Old with_deadline(Call& call) {
  Old to;
  to.deadline = instant<old::raft::PromiseInstant>(call.deadline);
  to.done = completion(std::move(call.done));
  to.group = number<old::node::CallGroup>(call.group);
  return to;
}

struct InputOf {
  OldEvent operator()(replica::Tick& /*unused*/) const { return old::node::Tick{}; }
  OldEvent operator()(replica::PeerMessageReceived& e) const {
    auto message = to_old(e.message);
    if (!message) return std::nullopt;
    return old::node::PeerMessageReceived{
        {number<old::raft::NodeId>(e.from.id), to_old(e.from.uuid)}, *std::move(message)};
  }
  OldEvent operator()(replica::Propose& e) const {
    auto to = with_deadline<old::node::Propose>(e);
    to.command = to_old(e.command);
    to.repeatable = e.repeatable;
    return to;
  }
  OldEvent operator()(replica::Read& e) const {
    auto to = with_deadline<old::node::Read>(e);
    to.mode = static_cast<old::node::ReadMode>(e.mode);
    return to;
  }
  OldEvent operator()(replica::WaitApplied& e) const {
    auto to = with_deadline<old::node::WaitApplied>(e);
    to.index = number<old::raft::Index>(e.index);
    return to;
  }
  OldEvent operator()(replica::ChangeMembers& e) const {
    auto to = with_deadline<old::node::ChangeMembers>(e);
    for (const raft::WantedMember& member : e.wanted) {
      to.wanted.push_back({number<old::raft::NodeId>(member.id), to_old(member.uuid),
                           member.address, static_cast<old::raft::Suffrage>(member.suffrage),
                           member.witness});
    }
    return to;
  }
  OldEvent operator()(replica::ChangeSettings& /*unused*/) const { return std::nullopt; }
  OldEvent operator()(replica::TransferLeadership& e) const {
    auto to = with_deadline<old::node::HandOver>(e);
    to.to = number<old::raft::NodeId>(e.to);
    return to;
  }
  OldEvent operator()(replica::CutLog& e) const {
    return old::node::CutLog{completion(std::move(e.done))};
  }
  OldEvent operator()(replica::ReadLog& /*unused*/) const { return std::nullopt; }
  OldEvent operator()(replica::Cancel& e) const {
    return old::node::Cancel{number<old::node::CallGroup>(e.group)};
  }
  OldEvent operator()(replica::Persisted& e) const {
    return old::node::Persisted{number<old::raft::ReadyId>(e.id)};
  }
  OldEvent operator()(replica::EntriesRead& e) const {
    using Entries = std::vector<old::raft::Entry>;
    return old::node::EntriesRead{
        e.token, result_of<Entries>(e.entries, [](const auto& value) { return to_old(value); })};
  }
  OldEvent operator()(replica::Applied& e) const {
    return old::node::Applied{number<old::raft::Index>(e.last), e.own};
  }
  OldEvent operator()(replica::MachineDurable& e) const {
    using Index = old::raft::Index;
    return old::node::MachineDurable{
        result_of<Index>(e.index, [](raft::Index value) { return number<Index>(value); })};
  }
  OldEvent operator()(replica::SnapshotTaken& e) const {
    using Taken = old::node::TakenSnapshot;
    return old::node::SnapshotTaken{
        result_of<Taken>(e.snapshot, [](const replica::TakenSnapshot& value) {
          return Taken{number<old::raft::Index>(value.last), value.tag, value.size};
        })};
  }
  OldEvent operator()(replica::SnapshotRead& e) const {
    return old::node::SnapshotRead{
        e.token, result_of<old::Bytes>(e.data, [](const Bytes& value) { return to_old(value); })};
  }
  OldEvent operator()(replica::ChunkStored& e) const {
    old::node::ChunkStored to;
    to.stored.from = number<old::raft::NodeId>(e.stored.from);
    to.stored.request_term = number<old::raft::Term>(e.stored.request_term);
    to.stored.round = number<old::raft::Round>(e.stored.round);
    to.stored.id = to_old(e.stored.id);
    to.stored.refused = e.stored.refused;
    to.stored.offset = e.stored.offset;
    if (e.complete) to.complete = to_old(*e.complete);
    return to;
  }
  /// It knows no such notice.
  OldEvent operator()(replica::PeerEnded&) const { return old::node::Tick{}; }
  /// It shares no promises, and where it may run nobody beats.
  OldEvent operator()(replica::GroupReleased&) const { return old::node::Tick{}; }
  OldEvent operator()(replica::PromisesMoved&) const { return old::node::Tick{}; }
  OldEvent operator()(replica::MayCampaign&) const { return old::node::Tick{}; }
  OldEvent operator()(replica::SupportsRemembered&) const { return old::node::Tick{}; }
  OldEvent operator()(replica::StorageSpace& e) const { return old::node::StorageSpace{e.full}; }
  OldEvent operator()(replica::MachineSpace& e) const { return old::node::MachineSpace{e.full}; }
  OldEvent operator()(replica::StorageFailed& e) const {
    return old::node::StorageFailed{to_old(e.error)};
  }
  OldEvent operator()(replica::Stop& /*unused*/) const { return old::node::Stop{}; }
};

}  // namespace

std::optional<old::node::Event> to_old(replica::Event event) {
  return std::visit(InputOf{}, event);
}

}  // namespace leasehold::mixed
