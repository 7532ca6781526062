#include <leasehold/sim/workload/lease_watchers.h>

#include <chrono>
#include <utility>

namespace leasehold::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// After this silence of a node, the watcher goes to another one.
constexpr Duration kPatience = milliseconds(800);

}  // namespace

LeaseWatchers::LeaseWatchers(World& world, const std::vector<SimNode*>& nodes, Oracles& oracles)
    : world_(world), oracles_(oracles) {
  for (SimNode* node : nodes) {
    // A witness keeps no keys.
    if (!node->witness()) nodes_.push_back(node);
  }
  if (world_.plan.leases.clients == 0) return;
  watchers_.resize(static_cast<std::size_t>(world_.plan.leases.watchers));
  for (std::size_t i = 0; i < watchers_.size(); ++i) {
    watchers_[i].random = random_for(world_.plan.seed, 950'000 + i);
    watchers_[i].node = watchers_[i].random.below(nodes_.size());
  }
}

void LeaseWatchers::start() {
  for (std::size_t i = 0; i < watchers_.size(); ++i) look_later(i);
}

void LeaseWatchers::look_later(std::size_t which) {
  const Duration pause =
      draw_duration(watchers_[which].random, milliseconds(1), world_.plan.leases.look_max);
  world_.queue.after(pause, [this, which] { look(which); });
}

void LeaseWatchers::look(std::size_t which) {
  Watcher& watcher = watchers_[which];
  if (watcher.random.chance(1, 12)) watcher.node = watcher.random.below(nodes_.size());
  const std::uint64_t number = ++watcher.looks;
  // The first of: the answer, the end of the patience.
  const auto once = [this, which, number](const std::optional<Answer>& answer) {
    Watcher& asked = watchers_[which];
    if (asked.looks != number) return;
    ++asked.looks;
    if (answer) {
      take(which, *answer);
    } else {
      asked.node = asked.random.below(nodes_.size());
    }
    look_later(which);
  };
  const Duration way = draw_duration(watcher.random, microseconds(50), milliseconds(3));
  const Duration back = draw_duration(watcher.random, microseconds(50),
                                      milliseconds(watcher.random.chance(1, 10) ? 1'000 : 3));
  const std::size_t counts[] = {1, 3, 1'000};
  const std::size_t count = counts[watcher.random.below(3)];
  SimNode& node = *nodes_[watcher.node];
  world_.queue.after(way, [this, &node, seen = watcher.seen, count, back, once] {
    if (!node.up()) return;
    node.run_in_process(node.life(), [this, &node, seen, count, back, once] {
      world_.queue.after(back, [once, said = answer(node, seen, count)] { once(said); });
    });
  });
  world_.queue.after(kPatience, [once] { once(std::nullopt); });
}

LeaseWatchers::Answer LeaseWatchers::answer(const SimNode& node, std::optional<std::uint64_t> seen,
                                            std::size_t count) {
  Answer answer;
  if (seen) {
    kv::EventHistory::Batch batch = node.machine().events().read(*seen + 1, count);
    answer.revisions = std::move(batch.revisions);
    if (!batch.lost) return answer;
  }
  const LeaseCells& cells = node.machine().present().leases;
  answer.revision = cells.revision;
  for (const auto& [key, value] : cells.cells) answer.copy[key] = std::string(value.bytes.view());
  return answer;
}

void LeaseWatchers::take(std::size_t which, const Answer& answer) {
  Watcher& watcher = watchers_[which];
  if (answer.revision) {
    watcher.seen = answer.revision;
    watcher.copy = answer.copy;
    return oracles_.watches().resynced(which, *answer.revision, watcher.copy);
  }
  for (const kv::Revision& revision : answer.revisions) {
    for (const kv::Event& event : revision.events) {
      const std::string key(event.key);
      if (event.kind == kv::EventKind::set) {
        watcher.copy[key] = std::string(event.value);
      } else {
        watcher.copy.erase(key);
      }
    }
    watcher.seen = revision.number;
    oracles_.watches().told(which, revision, watcher.copy);
  }
}

}  // namespace leasehold::sim
