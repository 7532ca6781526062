// How a node begins.
#include <leasehold/net/handshake.h>
#include <leasehold/node/node_ground.h>
#include <leasehold/node/node_identity.h>
#include <leasehold/node/node_shell.h>
#include <leasehold/node/random_word.h>

#include <utility>

namespace leasehold::node {

Result<void> NodeShell::start(const OpenMachine& open_machine) {
  if (const auto valid = validate_options(options_); !valid.ok()) return valid.error();
  replica::StateMachine* machine = nullptr;
  auto found = find_ground(options_, [&]() -> Result<raft::Index> {
    const auto opened = open_machine();
    if (!opened.ok()) return opened.error();
    machine = opened.value();
    return options_.witness ? raft::Index() : machine->durable_index();
  });
  if (!found.ok()) return found.error();
  Ground ground = std::move(found).value();
  log_ = std::move(ground.log);
  const storage::NodeIdentity& self = log_->identity();

  net::TcpOptions tcp;
  tcp.cluster_id = ground.cluster_id;
  if (ground.restored && ground.restored->recovered) {
    tcp.given_up_cluster = ground.restored->recovered->cluster_id;
    tcp.given_up_reason = given_up_text(*ground.restored->recovered);
  }
  tcp.id = options_.id;
  tcp.uuid = self.uuid;
  tcp.incarnation = self.incarnation;
  tcp.process = random_word();
  tcp.place = log_->place();
  tcp.streams = options_.peer_streams;
  tcp.listen = options_.listen.empty() ? ground.address : options_.listen;
  tcp.cluster = options_.cluster;
  tcp.address = ground.address;
  tcp.witness = options_.witness;
  auto guard = net::PeerGuard::load(options_.peer_security);
  if (!guard.ok()) return guard.error();
  tcp.guard = std::move(guard).value();
  if (!log_->formed()) {
    for (const Peer& peer : options_.peers) tcp.peers.push_back({peer.id, peer.address});
  }
  policy_ = policy();
  loop_.connect(std::move(tcp), policy_);
  links_ = std::make_unique<OwnLinks>(loop_.transport());
  if (const auto listening = loop_.listen(); !listening.ok()) return listening.error();

  GroupGround start;
  start.cluster_id = ground.cluster_id;
  start.self = self;
  start.address = ground.address;
  start.restored = ground.restored;
  start.members = std::move(ground.members);
  start.log = &log_->group();
  if (ground.initial) {
    start.initial = std::make_unique<raft::InitialState>(std::move(*ground.initial));
  }
  start.machine = machine;
  start.links = links_.get();
  start.transport = &loop_.transport();
  start.on_failed = [this] { loop_.transport().stop(); };
  loop_.add(group_);
  if (const auto ready = group_.prepare(std::move(start)); !ready.ok()) return ready.error();
  group_.begin();
  group_.act_on_formation();
  if (group_.failure()) return *group_.failure();
  loop_.run();
  return {};
}

Result<std::unique_ptr<Node>> Node::open(NodeOptions options, replica::StateMachine& machine,
                                         const lease::Clock& clock, replica::Observer& observer) {
  const auto opened = [&machine]() -> Result<replica::StateMachine*> { return &machine; };
  return open(std::move(options), opened, clock, observer);
}

Result<std::unique_ptr<Node>> Node::open(NodeOptions options, const OpenMachine& open_machine,
                                         const lease::Clock& clock, replica::Observer& observer) {
  auto shell = std::make_unique<NodeShell>(std::move(options), clock, observer);
  if (const auto started = shell->start(open_machine); !started.ok()) return started.error();
  return std::unique_ptr<Node>(std::move(shell));
}

}  // namespace leasehold::node
