#include <leasehold/sim/world/sim_supports.h>

#include <algorithm>
#include <utility>

namespace leasehold::sim {

SimSupports::SimSupports(World& world, std::uint64_t node)
    : world_(world), node_(node), random_(random_for(world.plan.seed, 500 + node)) {}

void SimSupports::open(std::function<void(std::uint64_t write)> done, RunInProcess run) {
  done_ = std::move(done);
  run_ = std::move(run);
}

void SimSupports::crash() {
  ++life_;
  if (waiting_.empty()) return;
  const std::uint64_t survive = random_.below(waiting_.size() + 1);
  for (std::uint64_t i = 0; i < survive; ++i) keep(waiting_[i]);
  waiting_.clear();
}

std::vector<raft::RememberedSupport> SimSupports::remembered() const {
  std::vector<raft::RememberedSupport> all;
  for (const auto& [directory, support] : durable_) all.push_back(support);
  return all;
}

void SimSupports::remember(std::vector<raft::RememberedSupport> supports, std::uint64_t write) {
  waiting_.push_back({write, std::move(supports)});
  const Duration sync =
      draw_duration(random_, world_.plan.disk.sync_min, world_.plan.nodes[node_ - 1].sync_max);
  last_end_ = std::max(last_end_, world_.queue.now() + sync);
  world_.queue.at(last_end_, [this, life = life_] {
    if (life == life_) finish();
  });
}

void SimSupports::finish() {
  const Write write = std::move(waiting_.front());
  waiting_.pop_front();
  keep(write);
  run_([this, number = write.number] { done_(number); });
}

void SimSupports::keep(const Write& write) {
  for (const raft::RememberedSupport& support : write.supports) {
    durable_[support.directory] = support;
  }
}

}  // namespace leasehold::sim
