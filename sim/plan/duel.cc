#include <leasehold/sim/plan/duel.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace leasehold::sim {
namespace {

using std::chrono::milliseconds;

/// A scene that has not ended within this time is given up.
constexpr Duration kSceneMax = milliseconds(2500);

}  // namespace

Duel::Duel(World& world, std::vector<SimNode*> nodes, Ports ports)
    : world_(world),
      nodes_(std::move(nodes)),
      ports_(std::move(ports)),
      random_(random_for(world.plan.seed, 4)) {}

void Duel::enter(Scene scene, Duration longest) {
  scene_ = scene;
  world_.queue.after(longest, [this, number = ++scenes_] {
    if (number == scenes_ && !world_.healed) rest();
  });
}

// All links are whole; after a while, the next elected leader begins the script.
void Duel::rest() {
  ports_.join();
  enter(Scene::peace, kSceneMax);
  world_.queue.after(draw_duration(random_, milliseconds(50), milliseconds(600)),
                     [this, number = scenes_] {
                       if (number != scenes_ || world_.healed) return;
                       enter(Scene::first, kSceneMax);
                       // A node has to be elected first.
                       for (SimNode* node : nodes_) {
                         if (node->leads()) ports_.isolate(*node);
                       }
                     });
}

void Duel::swap(SimNode& out, std::uint64_t crash_percent) {
  ports_.join();
  ports_.isolate(out);
  for (SimNode* node : nodes_) {
    const bool dies = random_.chance(crash_percent, 100);
    if (dies && node != first_ && node != second_) ports_.crash(*node);
  }
}

void Duel::on_elected(SimNode& node) {
  if (scene_ == Scene::first) {
    first_ = &node;
    second_ = nullptr;
    enter(Scene::second, kSceneMax);
    swap(node, 0);
  } else if (scene_ == Scene::second && &node != first_) {
    second_ = &node;
    enter(Scene::comeback, kSceneMax);
    swap(node, 50);
  } else if (scene_ == Scene::revenge && &node != first_) {
    // The first leader stays away for a while: its clients have moved to other nodes.
    enter(Scene::peace, draw_duration(random_, milliseconds(100), milliseconds(1000)));
  }
}

void Duel::on_commit(SimNode& node, raft::Index before) {
  if (scene_ != Scene::comeback || &node != first_) return;
  const DiskImage& log = node.disk().written();
  const raft::Index last = std::min(node.running().commit_index(), log.last_index());
  bool command = false;
  for (raft::Index i = before.next(); i <= last; i = i.next()) {
    command = command || log.entry(i).kind == raft::EntryKind::command;
  }
  if (!command) return;
  enter(Scene::revenge, kSceneMax);
  swap(node, 33);
}

}  // namespace leasehold::sim
