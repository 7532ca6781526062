#include <leasehold/base/scaled.h>
#include <leasehold/sim/plan/partition_trial.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

namespace leasehold::sim {
namespace {

using std::chrono::milliseconds;

}  // namespace

PartitionTrial::PartitionTrial(World& world, std::vector<SimNode*> nodes, SimNetwork& network)
    : world_(world),
      nodes_(std::move(nodes)),
      network_(network),
      random_(random_for(world.plan.seed, 12)) {}

void PartitionTrial::start() {
  world_.queue.after(draw_duration(random_, milliseconds(5000), milliseconds(9000)),
                     [this] { cut(); });
}

PartitionTrial::Heard PartitionTrial::draw() const {
  const std::size_t count = nodes_.size();
  // The place of each node in the shape.
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count; i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<std::size_t>(random_.below(i))]);
  }
  const std::uint64_t percent = 10 + 10 * random_.below(4);
  const std::size_t minority = 1 + static_cast<std::size_t>(random_.below((count - 1) / 2));
  const std::size_t middle = count / 2;
  Heard heard(count, std::vector<bool>(count, true));
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      const std::size_t apart = i < j ? j - i : i - j;
      bool hears = true;
      switch (*world_.options.shape) {
        case PartitionShape::one_way: hears = !random_.chance(percent, 100); break;
        // Two sides, and one node that is on both.
        case PartitionShape::bridge:
          hears = i == middle || j == middle || (i < middle) == (j < middle);
          break;
        case PartitionShape::ring: hears = apart == 1 || apart == count - 1; break;
        case PartitionShape::chain: hears = apart == 1; break;
        case PartitionShape::majority: hears = (i < minority) == (j < minority); break;
      }
      heard[order[i]][order[j]] = i == j || hears;
    }
  }
  return heard;
}

void PartitionTrial::cut() {
  heard_ = draw();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    for (std::size_t j = 0; j < nodes_.size(); ++j) {
      if (heard_[i][j]) continue;
      network_.block(nodes_[i]->id(), nodes_[j]->id(), 50);
    }
  }
  world_.used(FaultClass::partition);
  // A leader without a quorum leaves after D, and what it was promised last ends D later; then
  // the election timeouts. All on the slowest clock.
  const Duration bound = 2 * world_.plan.lease_max() + 10 * world_.plan.election_timeout_max();
  world_.queue.after(bound / (kMillion - world_.plan.drift_ppm_max) * kMillion + milliseconds(1),
                     [this] { look(); });
}

bool PartitionTrial::electable(std::size_t node) const {
  const raft::LogId own = nodes_[node]->running().log_last();
  std::size_t votes = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (both_ways(node, i) && !(own < nodes_[i]->running().log_last())) ++votes;
  }
  return votes > nodes_.size() / 2;
}

SimNode* PartitionTrial::leader() const {
  const auto leads = [](const SimNode* node) {
    return node->leads() && node->published().end > node->clock().now().holder;
  };
  const auto first = std::find_if(nodes_.begin(), nodes_.end(), leads);
  return first == nodes_.end() ? nullptr : *first;
}

void PartitionTrial::look() {
  found_ = leader();
  if (found_ != nullptr) {
    term_ = found_->running().term();
    outcome_ = TrialOutcome::stable;
    return;
  }
  outcome_ = TrialOutcome::nobody_electable;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!electable(i)) continue;
    world_.fail("partition", fmt::format("{}: nobody leads in time, though node {} could",
                                         describe(), nodes_[i]->id().value()));
    return;
  }
}

void PartitionTrial::finish() {
  if (found_ == nullptr) return;
  SimNode* const now = leader();
  if (now == found_ && now->running().term() == term_) return;
  world_.fail("partition", fmt::format("{}: node {} led in term {}, and does not any more",
                                       describe(), found_->id().value(), term_.value()));
}

std::string PartitionTrial::describe() const {
  std::string text = std::string(partition_shape_name(*world_.options.shape)) + " (";
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    text += fmt::format("{}{} is heard by", i == 0 ? "" : "; ", i + 1);
    for (std::size_t j = 0; j < nodes_.size(); ++j) {
      if (i != j && heard_[i][j]) text += fmt::format(" {}", j + 1);
    }
  }
  return text + ")";
}

}  // namespace leasehold::sim
