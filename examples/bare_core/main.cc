// The bare core: three replicas of Leasehold's protocol in one thread, with a loop, a transport, a
// disk and a clock of our own. It links Leasehold::core, which needs nothing but the standard
// library. Read it next to <leasehold/raft/ready.h>: Replica::act() is that page as code.
//
// Time is a number here, so the story is the same on every run: a leader is elected, commands are
// replicated, a read is served under the lease, the leader is cut off, its lease runs out, and only
// then can another one win an election.
#include <leasehold/raft/core.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace raft = leasehold::raft;
using leasehold::Bytes;
using std::chrono::milliseconds;

/// Our transport: messages that are due at an instant. A real one may lose, delay, duplicate and
/// reorder any of them; the protocol does not mind.
struct Network {
  struct Envelope {
    raft::PromiseInstant due;
    raft::NodeId from, to;
    raft::Message message;
  };
  std::vector<Envelope> in_flight;  // in the order of `due`: every message takes equally long
  std::optional<raft::NodeId> cut_off;

  void send(raft::Now now, raft::NodeId from, raft::NodeId to, raft::Message message) {
    if (cut_off == from || cut_off == to) return;
    in_flight.push_back({now.promise + milliseconds(2), from, to, std::move(message)});
  }
};

/// One replica: the core, and around it what the core leaves to its host.
class Replica {
 public:
  Replica(raft::NodeId id, const raft::Membership& members, Network& network, raft::Now now)
      : id_(id), network_(network) {
    raft::CoreOptions options;
    options.id = id;
    options.uuid = members.find(id)->uuid;
    options.incarnation = raft::Incarnation(1);  // a real host counts its starts durably
    options.seed = id.value();                   // of the election timeouts: differs by node
    raft::InitialState initial;                  // what the disk held; here: a new group
    initial.base_membership = members;
    core = std::make_unique<raft::Core>(options, std::move(initial), now);
  }

  /// After every input: act on all effects, each Ready from top to bottom.
  void drain(raft::Now now) {
    raft::Ready ready;
    while (core->take_ready(ready)) act(now, ready);
  }

  /// Is a read that has arrived linearizable on this replica, right now, without asking a peer?
  /// Copy the view first and look at the clock after; then wait for `applied` if it lags.
  std::optional<std::string> lease_read(raft::Now now, const std::string& key) const {
    const raft::LeaseState copy = view_;
    if (!(now.holder < copy.end) || applied_ < copy.commit) return std::nullopt;
    const auto found = store_.find(key);
    return found == store_.end() ? "" : found->second;
  }
  raft::HolderInstant lease_end() const { return view_.end; }

  std::unique_ptr<raft::Core> core;

 private:
  void act(raft::Now now, raft::Ready& ready) {
    // 1. The lease, before any message leaves: readers on other threads see it first.
    if (ready.lease) view_ = *ready.lease;
    // 2. What need not wait for the disk. The payloads of new entries are in memory first, since an
    // intent may ask for them at once.
    if (ready.persist.truncate_from) log_.resize(ready.persist.truncate_from->value() - 1);
    for (const raft::Entry& entry : ready.persist.entries) log_.push_back(entry);
    for (auto& m : ready.messages) network_.send(now, id_, m.to, std::move(m.message));
    for (const raft::AppendIntent& intent : ready.intents) fill(now, intent);
    // 3. One atomic, durable write. This disk is as fast as thought; a real one answers later, from
    // its own thread, through the loop.
    for (auto& m : ready.held) held_.push_back(std::move(m));
    if (!ready.persist.empty()) {
      durable_ = ready.persist.id;
      core->persisted(now, durable_);
    }
    // 4. Messages that claim something about the disk: votes, and acknowledgements of entries.
    const auto waits = [this](const raft::HeldMessage& m) { return durable_ < m.after; };
    for (auto& m : held_) {
      if (!waits(m)) network_.send(now, id_, m.to, std::move(m.message));
    }
    held_.erase(std::remove_if(held_.begin(), held_.end(), std::not_fn(waits)), held_.end());
    // 5. Committed entries go to the state machine: commands are "key=value" here.
    for (; applied_ < ready.apply_to; applied_ = applied_.next()) {
      const raft::Entry& entry = log_[applied_.value()];
      if (entry.kind != raft::EntryKind::command) continue;
      const std::string command(entry.payload.view());
      const std::size_t equals = command.find('=');
      store_[command.substr(0, equals)] = command.substr(equals + 1);
    }
    // 6. ready.events tell what happened, for logs and tests.
  }

  /// "Send these entries": the core knows their places, we have their bytes.
  void fill(raft::Now now, const raft::AppendIntent& intent) {
    raft::AppendRequest request;
    request.term = intent.term;
    request.prev = intent.prev;
    request.commit = intent.commit;
    request.round = intent.round;
    request.lease = intent.lease;
    request.drift_ppm = intent.drift_ppm;
    std::size_t bytes = 0;
    for (raft::Index i = intent.prev.index.next(); i <= intent.last; i = i.next()) {
      request.entries.push_back(log_[i.value() - 1]);
      bytes += request.entries.back().payload.size();
    }
    network_.send(now, id_, intent.to, std::move(request));
    core->filled(now, intent, intent.last, bytes);
  }

  raft::NodeId id_;
  Network& network_;
  std::vector<raft::Entry> log_;  // the entry with index i is log_[i - 1]
  std::vector<raft::HeldMessage> held_;
  raft::ReadyId durable_;
  raft::LeaseState view_;
  raft::Index applied_;
  std::map<std::string, std::string> store_;
};

/// Our loop: jump to the next instant at which anything is due, deliver, tick.
class World {
 public:
  World() {
    raft::Membership members;
    for (std::uint64_t i = 1; i <= 3; ++i) {
      const raft::NodeId id(i);
      members.members.push_back({id, raft::Uuid{i, i}, "node" + std::to_string(i)});
      members.voters.push_back(id);
    }
    for (const raft::Member& member : members.members) {
      replicas.emplace(member.id, Replica(member.id, members, network, now));
    }
    for (auto& [id, replica] : replicas) replica.drain(now);
  }

  template <class Condition>
  bool run_until(Condition done, milliseconds at_most = milliseconds(10'000)) {
    const raft::PromiseInstant end = now.promise + at_most;
    while (!done()) {
      raft::PromiseInstant next = end;
      if (!network.in_flight.empty()) next = std::min(next, network.in_flight.front().due);
      for (auto& [id, replica] : replicas) next = std::min(next, replica.core->next_deadline());
      const raft::Duration step = std::max(next - now.promise, raft::Duration(0));
      now = {now.holder + step, now.promise + step};
      if (now.promise >= end) return done();
      while (!network.in_flight.empty() && network.in_flight.front().due <= now.promise) {
        Network::Envelope envelope = std::move(network.in_flight.front());
        network.in_flight.erase(network.in_flight.begin());
        Replica& to = replicas.at(envelope.to);
        const raft::Peer from{envelope.from, replicas.at(envelope.from).core->options().uuid};
        to.core->step(now, from, std::move(envelope.message));
        to.drain(now);
      }
      for (auto& [id, replica] : replicas) {
        if (replica.core->next_deadline() > now.promise) continue;
        replica.core->tick(now);
        replica.drain(now);
      }
    }
    return true;
  }

  /// A replica that holds the lease, other than `not_this`.
  std::optional<raft::NodeId> holder(raft::NodeId not_this = raft::kNobody) const {
    for (const auto& [id, replica] : replicas) {
      if (id != not_this && now.holder < replica.lease_end()) return id;
    }
    return std::nullopt;
  }
  long long ms() const {
    return static_cast<long long>(now.promise.since_origin() / milliseconds(1));
  }

  raft::Now now;
  Network network;
  std::map<raft::NodeId, Replica> replicas;
};

int fail(const char* what) {
  std::fprintf(stderr, "bare_core: %s\n", what);
  return 1;
}

int main() {
  World world;
  if (!world.run_until([&] { return world.holder().has_value(); })) return fail("no leader");
  const raft::NodeId first = *world.holder();
  Replica& leader = world.replicas.at(first);
  std::printf("%5lld ms  node %d leads term %d and holds the lease\n", world.ms(),
              static_cast<int>(first.value()), static_cast<int>(leader.core->term().value()));

  const auto at = leader.core->propose(world.now, {Bytes("color=blue"), Bytes("shape=round")});
  if (!at) return fail("the leader refused a proposal");
  leader.drain(world.now);
  const raft::Index last = at->index + 1;
  if (!world.run_until([&] { return leader.core->commit_index() >= last; })) return fail("stuck");
  std::printf("%5lld ms  two commands are committed\n", world.ms());

  const auto color = leader.lease_read(world.now, "color");
  if (color != "blue") return fail("the lease read was wrong");
  std::printf("%5lld ms  a read under the lease: color is %s; no message, no log entry\n",
              world.ms(), color->c_str());

  world.network.cut_off = first;
  std::printf("%5lld ms  node %d is cut off\n", world.ms(), static_cast<int>(first.value()));
  if (!world.run_until([&] { return !world.holder(); })) return fail("the lease never ended");
  if (leader.lease_read(world.now, "color")) return fail("a read without a lease");
  std::printf("%5lld ms  its lease has run out: it refuses to read\n", world.ms());
  if (!world.run_until([&] { return world.holder(first).has_value(); }))
    return fail("no successor");
  const raft::NodeId second = *world.holder(first);
  const auto again = world.replicas.at(second).lease_read(world.now, "shape");
  if (again != "round") return fail("the new leader lost a committed command");
  std::printf("%5lld ms  node %d leads term %d; under its lease shape is %s\n", world.ms(),
              static_cast<int>(second.value()),
              static_cast<int>(world.replicas.at(second).core->term().value()), again->c_str());
  return 0;
}
