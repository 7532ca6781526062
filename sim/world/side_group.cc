#include <leasehold/base/assert.h>
#include <leasehold/replica/apply.h>
#include <leasehold/sim/world/side_group.h>

#include <algorithm>

namespace leasehold::sim {
namespace {

/// Apart from those of the group that is judged in full.
std::uint64_t salt_of(raft::GroupId group) {
  return 20'000 * group.value();
}

}  // namespace

std::vector<Bytes> NewestCommand::apply(const std::vector<replica::Command>& commands,
                                        raft::Index last) {
  if (!commands.empty()) newest_ = commands.back().bytes;
  applied_ = last;
  return std::vector<Bytes>(commands.size());
}

SideGroup::SideGroup(World& world, raft::GroupId group, raft::NodeId node, raft::Membership members,
                     SideGroupPorts ports)
    : world_(world),
      group_(group),
      node_(node),
      members_(std::move(members)),
      ports_(std::move(ports)),
      random_(random_for(world.plan.seed, salt_of(group) + node.value())),
      disk_(
          world, node.value(), [](const raft::PersistBatch&) {}, salt_of(group)) {}

const raft::Core* SideGroup::core() const {
  return life_ && life_->driver && !life_->driver->failure() ? &life_->driver->core() : nullptr;
}

// ---- Its life ----

void SideGroup::open(const replica::DriverOptions& options, replica::ProcessDriver& process,
                     RunInProcess run, TrueInstant begins, TrueInstant ends) {
  LEASEHOLD_ASSERT(!life_ && member());
  life_.reset(new Life{options, process, std::move(run), begins, ends});
  life_->options.core.group = group_;
  life_->options.core.witness = false;
  life_->options.core.shared = &process.promises();
  disk_.open(*this, life_->run);
  look_at(begins);
  look_at(ends);
}

void SideGroup::look_at(TrueInstant when) {
  if (when == TrueInstant::never()) return;
  world_.queue.at(std::max(when, world_.queue.now()),
                  [this, run = life_->run] { run([this] { ports_.post(replica::Tick{}); }); });
}

void SideGroup::crash() {
  life_.reset();
  disk_.crash();
}

void SideGroup::begin(lease::Now now) {
  Life& life = *life_;
  raft::InitialState initial = disk_.initial_state(members_);
  life.begins = TrueInstant::never();
  life.driver = std::make_unique<replica::Driver>(
      life.options, std::move(initial),
      replica::Driver::Ports{*this, disk_, *this, *this, life.view, life.callers, *this}, now);
  life.process.add(*life.driver);
  life.batch.emplace_back(replica::Tick{});  // it may have to stand in line
}

void SideGroup::end(lease::Now now) {
  Life& life = *life_;
  life.ends = TrueInstant::never();
  life.batch.emplace_back(replica::Stop{});
  handle(now);
  life.process.remove(*life.driver);
  life.driver.reset();
}

// ---- A turn ----

void SideGroup::turn(lease::Now now) {
  if (!life_) return;
  Life& life = *life_;
  if (!life.driver && life.begins != TrueInstant::never() && due(life.begins)) begin(now);
  if (!life.driver) {
    life.batch.clear();  // as if it had been lost
    return;
  }
  if (due(life.ends)) return end(now);
  if (!life.batch.empty() || now.promise >= life.driver->next_deadline()) handle(now);
}

void SideGroup::handle(lease::Now now) {
  Life& life = *life_;
  if (life.batch.empty()) life.batch.emplace_back(replica::Tick{});
  life.driver->handle_batch(now, life.batch);
  ports_.judge();
  for (const std::function<void()>& complete : life.driver->take_completions()) complete();
  life.process.handled(*life.driver);
}

raft::PromiseInstant SideGroup::next_deadline() const {
  return core() != nullptr ? life_->driver->next_deadline() : raft::PromiseInstant::never();
}

// ---- What the driver asks for ----

void SideGroup::send(raft::NodeId to, wire::PeerMessage message) {
  ports_.send(to, std::move(message));
}

void SideGroup::on_event(const raft::Event& event) {
  if (world_.recorder) world_.recorder->event(event);
  const auto* change = std::get_if<raft::RoleChanged>(&event.what);
  if (change != nullptr && change->to == raft::Role::leader) ++world_.nodes.side_leaders;
}

void SideGroup::apply(std::vector<raft::Entry> entries) {
  life_->applies.push_back(std::move(entries));
  if (life_->applies.size() == 1) apply_next();
}

void SideGroup::apply_next() {
  const NodePlan& plan = world_.plan.nodes[node_.value() - 1];
  const Duration longest = world_.healed ? plan.apply_min : plan.apply_max;
  const auto finish = [this] {
    Life& life = *life_;
    Result<replica::AppliedEntries> answer = replica::apply_entries(
        life.applies.front(), node_, life.options.core.incarnation, life.machine);
    LEASEHOLD_ASSERT(answer.ok());
    life.applies.pop_front();
    if (!life.applies.empty()) apply_next();
    life.view.publish_applied(answer.value().last);
    ports_.post(replica::complete(std::move(answer).value(), life.callers));
  };
  world_.queue.after(draw_duration(random_, plan.apply_min, longest),
                     [run = life_->run, finish] { run(finish); });
}

}  // namespace leasehold::sim
