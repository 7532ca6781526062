#include <leasehold/base/assert.h>
#include <leasehold/replica/snapshot_receiver.h>

namespace leasehold::replica {

void SnapshotReceiver::received(lease::Now now, const raft::ReceivedChunk& received) {
  const raft::SnapshotChunk& chunk = received.chunk;
  if (context_.disk_full) {
    // The log needs the remaining space.
    raft::Core::StoredChunk refused;
    refused.from = received.from;
    refused.request_term = chunk.term;
    refused.round = chunk.round;
    refused.id = chunk.id;
    refused.refused = true;
    context_.core.chunk_stored(now, refused);
    return;
  }
  if (storing_ >= context_.limits.chunks_storing_max) {
    ++context_.counters.chunks_dropped;
    return;
  }
  ++storing_;
  ++context_.counters.chunks_received;
  transfer_ = SnapshotTransfer{received.from, false, chunk.id.last.index, chunk.offset, chunk.size};
  context_.ports.snapshots.store(received);
}

void SnapshotReceiver::stored(lease::Now now, ChunkStored& event) {
  LEASEHOLD_ASSERT(storing_ > 0);
  --storing_;
  context_.counters.snapshot_bytes_copied += event.copied;
  if (transfer_ && transfer_->last == event.stored.id.last.index) {
    transfer_->bytes = event.stored.offset;
    if (event.stored.refused || event.complete) transfer_.reset();
  }
  if (event.complete) {
    const bool taken = context_.core.snapshot_received(now, event.stored.id, *event.complete);
    if (!taken) context_.ports.snapshots.discard();
  }
  context_.core.chunk_stored(now, event.stored);
}

void SnapshotReceiver::status(std::vector<SnapshotTransfer>& out) const {
  if (transfer_ && transfer_->peer == context_.core.leader()) out.push_back(*transfer_);
}

}  // namespace leasehold::replica
