#include <leasehold/base/assert.h>
#include <leasehold/sim/world/store_nodes.h>

#include <chrono>
#include <string>
#include <utility>

namespace leasehold::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kPatience = milliseconds(800);
/// Leases that are named as due at once.
constexpr std::size_t kDueMax = 2;

}  // namespace

StoreNodes::StoreNodes(World& world, const std::vector<SimNode*>& nodes) : world_(world) {
  for (SimNode* node : nodes) places_.push_back({node, 0, nullptr, nullptr});
}

void StoreNodes::start() {
  if (started_) return;
  started_ = true;
  for (Place& place : places_) look_later(place);
}

// ---- The way to a node and back ----

void StoreNodes::send(Caller& caller, const kv::Command& command, Arrive arrive, Reply told) {
  const std::uint64_t attempt = ++caller.attempts;
  // The first of: the reply, the end of the patience.
  const auto once = [this, &caller, attempt,
                     told = std::move(told)](const std::optional<kv::Reply>& reply) {
    if (caller.attempts != attempt) return;
    ++caller.attempts;
    if (!reply) caller.node = caller.random.below(places_.size());
    told(reply);
  };
  const bool slow = caller.random.chance(1, 10);
  const Duration way = draw_duration(caller.random, microseconds(50),
                                     slow ? Duration(milliseconds(300)) : milliseconds(3));
  const Duration back = draw_duration(caller.random, microseconds(50),
                                      slow ? Duration(milliseconds(300)) : milliseconds(3));
  Place& place = places_[static_cast<std::size_t>(caller.node)];
  // The command's strings belong to the caller, which goes on: only bytes travel.
  const Bytes bytes = kv::encode_command(command).value();
  world_.queue.after(way, [this, &place, bytes, back, arrive = std::move(arrive), once] {
    if (!place.node->up()) return;
    place.node->run_in_process(place.node->life(), [this, &place, bytes, back, arrive, once] {
      arrive(place, kv::decode_command(bytes.view()).value(),
             [this, back, once](const std::optional<kv::Reply>& reply) {
               world_.queue.after(back, [once, reply] { once(reply); });
             });
    });
  });
  world_.queue.after(kPatience, [once] { once(std::nullopt); });
}

void StoreNodes::propose(SimNode& node, const kv::Command& command, const Reply& told) {
  propose(node, command, kPatience, told);
}

void StoreNodes::propose(SimNode& node, const kv::Command& command, Duration patience,
                         const Reply& told) {
  RegisterMachine::Command wrapped;
  wrapped.kind = RegisterMachine::Kind::leases;
  wrapped.of_store = std::string(kv::encode_command(command).value().view());
  replica::Propose propose;
  propose.command = RegisterMachine::encode(wrapped);
  propose.deadline = node.clock().now().promise + patience;
  propose.done = [told](const replica::ProposeResult& result) {
    if (result.status != replica::ProposeStatus::committed) return told(std::nullopt);
    auto reply = kv::decode_reply(result.result);
    LEASEHOLD_ASSERT(reply.ok());
    told(std::move(reply).value());
  };
  node.post(std::move(propose));
}

// ---- The end of leases and keys ----

kv::LeaseKeeper& StoreNodes::keeper_of(Place& place) {
  if (place.life != place.node->life()) {
    place.life = place.node->life();
    const SimNode* node = place.node;
    place.keeper = std::make_unique<kv::LeaseKeeper>(
        node->clock(), [node](std::uint64_t) -> Result<kv::LeaseChanges> {
          return node->machine().present().leases.changes();
        });
    place.under_way = std::make_shared<std::size_t>(0);
  }
  return *place.keeper;
}

void StoreNodes::look_later(Place& place) {
  world_.queue.after(milliseconds(100), [this, &place] {
    place.node->run_in_process(place.node->life(), [this, &place] { look(place); });
    look_later(place);
  });
}

void StoreNodes::look(Place& place) {
  const SimNode& node = *place.node;
  const replica::LeaseLook look = node.view().look(node.clock());
  std::optional<raft::Term> leads_in;
  if (look.valid()) leads_in = look.state.term;
  auto due = keeper_of(place).look(leads_in, kDueMax);
  LEASEHOLD_ASSERT(due.ok());
  if (due.value().empty() || *place.under_way > 0) return;
  ++*place.under_way;
  propose(*place.node, kv::ExpireLeases{*leads_in, std::move(due).value()}, milliseconds(400),
          [under_way = place.under_way](const std::optional<kv::Reply>&) { --*under_way; });
}

}  // namespace leasehold::sim
