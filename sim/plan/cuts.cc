#include <leasehold/sim/plan/cuts.h>

namespace leasehold::sim {

Links draw_partition(Random& random, std::size_t count, std::size_t target) {
  const std::size_t other = (target + 1 + random.below(count - 1)) % count;
  const std::uint64_t kind = random.below(6);
  std::vector<bool> side(count, false);
  for (std::size_t i = 0; i < count; ++i) {
    const bool drawn = random.chance(1, 2);
    side[i] = kind == 0 ? i == target : drawn;
  }
  Links links;
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      if (a == b) continue;
      bool apart = side[a] != side[b];
      // Bridge: two sides that do not hear each other, but both hear the target.
      if (kind == 2) apart = apart && a != target && b != target;
      // Ring: each hears its two neighbours only. With three nodes, the link opposite the target.
      const std::size_t distance = (a + count - b) % count;
      if (kind == 3) {
        apart = count > 3 ? distance != 1 && distance != count - 1 : a != target && b != target;
      }
      // Two that do not hear each other while all others hear both.
      if (kind >= 4) apart = (a == target && b == other) || (a == other && b == target);
      if (apart) links.emplace_back(a, b);
    }
  }
  return links;
}

Links draw_one_way_cut(Random& random, std::size_t count, std::size_t target) {
  const std::uint64_t kind = random.below(3);
  Links links;
  for (std::size_t i = 0; i < count; ++i) {
    if (i == target) continue;
    const bool outgoing = random.chance(1, 2);
    if (kind == 0) links.emplace_back(target, i);  // it is not heard
    if (kind == 1) links.emplace_back(i, target);  // it does not hear
    if (kind == 2) links.emplace_back(outgoing ? target : i, outgoing ? i : target);
  }
  return links;
}

void Cuts::cut(Links links, Duration length, std::uint64_t in_flight_loss_percent) {
  for (const std::pair<std::size_t, std::size_t>& link : links) {
    network_.block(nodes_[link.first]->id(), nodes_[link.second]->id(), in_flight_loss_percent);
  }
  const std::uint64_t number = next_++;
  cuts_.emplace(number, std::move(links));
  world_.queue.after(length, [this, number] { end(number); });
}

void Cuts::join() {
  while (!cuts_.empty()) end(cuts_.begin()->first);
}

void Cuts::end(std::uint64_t number) {
  const auto found = cuts_.find(number);
  if (found == cuts_.end()) return;  // it was ended before its time
  for (const std::pair<std::size_t, std::size_t>& link : found->second) {
    network_.unblock(nodes_[link.first]->id(), nodes_[link.second]->id());
  }
  cuts_.erase(found);
}

Links Cuts::links_of(const SimNode& node) const {
  Links links;
  const std::size_t alone = node.id().value() - 1;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (i == alone) continue;
    links.emplace_back(alone, i);
    links.emplace_back(i, alone);
  }
  return links;
}

}  // namespace leasehold::sim
