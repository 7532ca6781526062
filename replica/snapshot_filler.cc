#include <leasehold/base/assert.h>
#include <leasehold/replica/snapshot_filler.h>

#include <algorithm>
#include <utility>

namespace leasehold::replica {
namespace {

constexpr std::size_t kHeldDigestBytes = 32;

std::uint64_t end_of_block(const HeldBlocks::Block& block) {
  return block.offset + block.size;
}

bool valid(const HeldBlocks::Block& block, std::uint64_t from, std::uint64_t size) {
  return block.size > 0 && block.size <= kHeldBlockBytesMax &&
         block.sha256.size() == kHeldDigestBytes && block.offset <= size &&
         block.size <= size - block.offset && end_of_block(block) > from;
}

}  // namespace

void SnapshotFiller::reset() {
  ask_at_ = 1;
  blocks_.reset();
  block_.reset();
  beyond_ = 0;
  buffer_ = std::string();
}

void SnapshotFiller::ask(const ArrivingSnapshot& arriving) {
  const std::uint64_t arrived = arriving.received();
  if (!ask_at_ || arrived < *ask_at_) return;
  HeldAnswer answer = machine_.held_blocks(arriving, arrived);
  const bool again = !answer.blocks && answer.ask_again_at > arrived;
  ask_at_ = again ? std::optional(answer.ask_again_at) : std::nullopt;
  blocks_ = std::move(answer.blocks);
}

/// Makes block_ the next one that is of use. False: there is none.
bool SnapshotFiller::find(const ArrivingSnapshot& arriving) {
  if (!blocks_) return false;
  const std::uint64_t from = std::max(arriving.received(), beyond_);
  if (block_ && end_of_block(*block_) > from) return true;
  block_ = blocks_->next(from);
  if (block_ && valid(*block_, from, arriving.size())) return true;
  blocks_.reset();
  block_.reset();
  return false;
}

bool SnapshotFiller::wants(const ArrivingSnapshot& arriving) {
  ask(arriving);
  return find(arriving) && block_->offset <= arriving.received();
}

Result<std::uint64_t> SnapshotFiller::copy(ArrivingSnapshot& arriving) {
  const std::uint64_t received = arriving.received();
  LEASEHOLD_ASSERT(block_ && block_->offset <= received && end_of_block(*block_) > received);
  beyond_ = end_of_block(*block_);
  buffer_.resize(block_->size);
  if (!blocks_->read(*block_, buffer_.data()).ok()) return std::uint64_t{0};
  if (digest_(buffer_) != block_->sha256) return std::uint64_t{0};
  // What the leader has sent of it, or a process before this one had copied, is there.
  const auto there = static_cast<std::size_t>(received - block_->offset);
  const auto added = arriving.append(std::string_view(buffer_).substr(there));
  if (!added.ok()) return added.error();
  return std::uint64_t{block_->size - there};
}

}  // namespace leasehold::replica
