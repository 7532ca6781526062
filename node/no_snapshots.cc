#include <leasehold/base/assert.h>
#include <leasehold/node/no_snapshots.h>

#include <utility>

namespace leasehold::node {
namespace {

Error unsupported() {
  return Error{ErrorCode::unsupported, "this node offers no snapshots: its log is kept whole"};
}

}  // namespace

NoSnapshots::NoSnapshots(std::function<void(Event)> post) : post_(std::move(post)) {}

void NoSnapshots::make_durable() {
  post_(MachineDurable{unsupported()});
}

void NoSnapshots::take() {
  post_(SnapshotTaken{unsupported()});
}

void NoSnapshots::read(std::uint64_t token, std::uint64_t /*tag*/, std::uint64_t /*offset*/,
                       std::size_t /*bytes*/) {
  post_(SnapshotRead{token, unsupported()});
}

void NoSnapshots::release(std::uint64_t /*tag*/) {}

void NoSnapshots::store(const raft::ReceivedChunk& received) {
  raft::Core::StoredChunk stored;
  stored.from = received.from;
  stored.request_term = received.chunk.term;
  stored.round = received.chunk.round;
  stored.id = received.chunk.id;
  stored.refused = true;
  post_(ChunkStored{stored, std::nullopt});
}

void NoSnapshots::discard() {
  LEASEHOLD_UNREACHABLE();  // nothing was ever complete
}

}  // namespace leasehold::node
