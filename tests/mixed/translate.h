// The values of this code as those of release 0.1, and back.
#pragma once

#include <leasehold/raft/core.h>
#include <leasehold/replica/driver.h>
#include <leasehold/wire/peer_message.h>
#include <leasehold_0_1/node/driver.h>

#include <optional>
#include <vector>

namespace leasehold::mixed {

namespace old = leasehold_0_1;

/// Strong integers and clock instants: whatever the tag.
template <class To, class From>
To number(const From& from) {
  return To(from.value());
}
template <class To, class From>
To instant(const From& from) {
  return To(from.since_origin());
}

old::lease::Now to_old(lease::Now now);
old::Bytes to_old(const Bytes& bytes);
Bytes to_new(const old::Bytes& bytes);
old::raft::LogId to_old(raft::LogId id);
raft::LogId to_new(old::raft::LogId id);
old::raft::SnapshotId to_old(const raft::SnapshotId& id);
raft::SnapshotId to_new(const old::raft::SnapshotId& id);
old::raft::Uuid to_old(const raft::Uuid& uuid);
raft::Uuid to_new(const old::raft::Uuid& uuid);
/// Asserts that it has no settings: release 0.1 knows none.
old::raft::Membership to_old(const raft::Membership& membership);
raft::Membership to_new(const old::raft::Membership& membership);
old::lease::Timing to_old(const lease::Timing& timing);
lease::Timing to_new(const old::lease::Timing& timing);
old::raft::Entry to_old(const raft::Entry& entry);
raft::Entry to_new(const old::raft::Entry& entry);
std::vector<old::raft::Entry> to_old(const std::vector<raft::Entry>& entries);
std::vector<raft::Entry> to_new(const std::vector<old::raft::Entry>& entries);
old::Error to_old(const Error& error);
Error to_new(const old::Error& error);
raft::StoredPromise to_new(const old::raft::StoredPromise& promise);
old::raft::HardState to_old(const raft::HardState& state);
raft::HardState to_new(const old::raft::HardState& state);
raft::LogBase to_new(const old::raft::LogBase& base);
raft::PersistBatch to_new(const old::raft::PersistBatch& batch);
old::raft::InitialState to_old(const raft::InitialState& initial);
old::node::DriverOptions to_old(const replica::DriverOptions& options);
raft::ReceivedChunk to_new(const old::raft::ReceivedChunk& received);
raft::Event to_new(const old::raft::Event& event);
/// Through the bytes of wire version 3. None: the receiver's codec refuses them, and its connection
/// would end.
std::optional<old::net::PeerMessage> to_old(const wire::PeerMessage& message);
std::optional<wire::PeerMessage> to_new(const old::net::PeerMessage& message);
/// None: an input that release 0.1 does not have.
std::optional<old::node::Event> to_old(replica::Event event);

}  // namespace leasehold::mixed
