// The order in which every host of a core carries out the effects of one turn.
#pragma once

#include <leasehold/raft/ready.h>

#include <utility>

namespace leasehold::raft {

/// Lets `host` carry out `ready`, from top to bottom. Other threads and nodes may act between any
/// two calls: a reader may read the published view, a peer may answer a sent message. So the order
/// decides what is safe (the numbers are those of ready.h). Elements are moved from.
///
/// A host has, for one group (with an explanation where the name is not enough):
///
/// - `void publish(const LeaseState&)`: to readers on other threads.
/// - `void release(const Release&)`: to the members, by the next beat of this process. Only where
///   groups share promises.
/// - `void send(NodeId to, Message)`
/// - `void write(PersistBatch&, const std::vector<AppendIntent>&)`: makes the entries of the batch
///   readable, then fills the intents, which may ask for these very entries, and last gives the
///   batch to storage unless it is empty: a leader's appends overtake its own disk. Either may be
///   empty.
/// - `void hold(HeldMessage)`: until a batch is durable.
/// - `void send_snapshot(const SnapshotIntent&)`
/// - `void store_chunk(const ReceivedChunk&)`
/// - `void install(const SnapshotId&)`
/// - `void apply_to(Index)`
/// - `void committed(Index)`
/// - `void answer(const ReadAnswer&)`
/// - `void tell(const Event&)`
template <class Host>
void carry_out(Ready& ready, Host& host) {
  if (ready.lease) host.publish(*ready.lease);
  if (ready.release) host.release(*ready.release);
  for (OutgoingMessage& out : ready.messages) host.send(out.to, std::move(out.message));
  host.write(ready.persist, ready.intents);
  for (HeldMessage& held : ready.held) host.hold(std::move(held));
  for (const SnapshotIntent& intent : ready.snapshots) host.send_snapshot(intent);
  for (const ReceivedChunk& received : ready.chunks) host.store_chunk(received);
  if (ready.install) host.install(*ready.install);
  if (ready.apply_to > Index(0)) host.apply_to(ready.apply_to);
  if (ready.commit > Index(0)) host.committed(ready.commit);
  for (const ReadAnswer& answer : ready.reads) host.answer(answer);
  for (const Event& event : ready.events) host.tell(event);
}

}  // namespace leasehold::raft
