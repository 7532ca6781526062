#include <leasehold/sim/workload/session_watch.h>

#include <chrono>
#include <optional>
#include <utility>

namespace leasehold::sim {

SessionWatch::SessionWatch(World& world, const std::vector<SimNode*>& nodes) : world_(world) {
  for (SimNode* node : nodes) {
    watched_.push_back({node, 0, replica::SessionExpiry(world.plan.sessions.idle_max),
                        std::make_shared<std::size_t>(0)});
  }
}

void SessionWatch::start() {
  if (world_.plan.sessions.clients == 0) return;
  for (Watched& watched : watched_) look_later(watched);
}

void SessionWatch::look_later(Watched& watched) {
  world_.queue.after(world_.plan.sessions.idle_max / 5, [this, &watched] {
    watched.node->run_in_process(watched.node->life(), [this, &watched] { look(watched); });
    look_later(watched);
  });
}

void SessionWatch::look(Watched& watched) const {
  SimNode& node = *watched.node;
  if (watched.life != node.life()) {
    watched.life = node.life();
    watched.expiry = replica::SessionExpiry(world_.plan.sessions.idle_max);
    watched.under_way = std::make_shared<std::size_t>(0);
  }
  std::optional<raft::Term> term;
  if (node.leads()) term = node.running().term();
  const raft::PromiseInstant now = node.clock().now().promise;
  const std::vector<replica::SessionTable::Session> sessions =
      node.machine().present().sessions.list();
  const auto due = watched.expiry.look(now, term, sessions);
  if (*watched.under_way > 0) return;
  for (const replica::SessionExpiry::Idle& idle : due) {
    RegisterMachine::Command command;
    command.kind = RegisterMachine::Kind::expire;
    command.session = idle.id;
    command.activity = idle.activity;
    replica::Propose propose;
    propose.command = RegisterMachine::encode(command);
    propose.deadline = now + std::chrono::seconds(1);
    ++*watched.under_way;
    propose.done = [under_way = watched.under_way](const replica::ProposeResult&) { --*under_way; };
    propose.repeatable = true;
    node.post(std::move(propose));
  }
}

}  // namespace leasehold::sim
