#include "earlier_replica.h"

#include "translate.h"

#include <leasehold/base/assert.h>
#include <leasehold_0_1/node/apply.h>
#include <leasehold_0_1/node/callers.h>

#include <utility>

namespace leasehold::mixed {
namespace {

/// The ports of release 0.1 in front of ours. What the driver publishes in its lease view
/// is published in ours before anything else that the driver does can show it.
class EarlierReplica : public sim::RunningReplica,
                       private old::net::Transport,
                       private old::storage::Storage,
                       private old::node::Applier,
                       private old::node::Snapshots,
                       private old::node::Observer {
 public:
  EarlierReplica(const replica::DriverOptions& options, const raft::InitialState& initial,
                 const Ports& ports, lease::Now now)
      : ports_(ports),
        timing_(options.core.timing),
        driver_(
            to_old(options), to_old(initial),
            old::node::Driver::Ports{*this, *this, *this, *this, begun(initial), callers_, *this},
            to_old(now)) {
    show_lease();
  }

  void handle_batch(lease::Now now, std::vector<replica::Event>& events) override {
    std::vector<old::node::Event> translated;
    for (replica::Event& event : events) {
      if (const auto* applied = std::get_if<replica::Applied>(&event)) {
        view_.publish_applied(number<old::raft::Index>(applied->last));
      }
      auto to = to_old(std::move(event));
      LEASEHOLD_ASSERT(to.has_value());
      translated.push_back(*std::move(to));
    }
    events.clear();
    driver_.handle_batch(to_old(now), translated);
    show_lease();
    if (driver_.failure() && !failure_) failure_ = to_new(*driver_.failure());
  }
  std::vector<std::function<void()>> take_completions() override {
    return driver_.take_completions();
  }
  raft::PromiseInstant next_deadline() const override {
    return instant<raft::PromiseInstant>(driver_.next_deadline());
  }
  raft::Index applied() const override { return number<raft::Index>(driver_.applied()); }
  const std::optional<Error>& failure() const override { return failure_; }
  replica::Applied complete(replica::AppliedEntries applied) override {
    old::node::AppliedEntries entries;
    entries.last = number<old::raft::Index>(applied.last);
    view_.publish_applied(entries.last);
    for (const replica::AppliedCommand& command : applied.own) {
      entries.own.push_back({command.sequence, to_old(command.id), to_old(command.result)});
    }
    old::node::Applied done = old::node::complete(std::move(entries), callers_);
    return {number<raft::Index>(done.last), std::move(done.own)};
  }

  raft::Role role() const override { return static_cast<raft::Role>(core().role()); }
  raft::Term term() const override { return number<raft::Term>(core().term()); }
  raft::Index commit_index() const override { return number<raft::Index>(core().commit_index()); }
  raft::Index durable_index() const override { return number<raft::Index>(core().durable_index()); }
  const lease::Timing& timing() const override { return timing_; }
  const raft::Membership& membership() const override {
    if (!known_ || *known_ != core().membership()) {
      known_ = core().membership();
      membership_ = to_new(*known_);
    }
    return membership_;
  }
  raft::StoredPromise stored_promise() const override {
    return to_new(core().hard_state().promise);
  }
  raft::PromiseInstant promise_until() const override {
    return instant<raft::PromiseInstant>(core().promise().until());
  }
  raft::LogId log_base() const override { return to_new(core().log().base()); }
  raft::LogId log_last() const override { return to_new(core().log().last()); }
  std::optional<raft::Term> term_at(raft::Index index) const override {
    const auto term = core().log().term_at(number<old::raft::Index>(index));
    return term ? std::optional(number<raft::Term>(*term)) : std::nullopt;
  }
  raft::Membership membership_at(raft::Index index) const override {
    return to_new(core().log().membership_at(number<old::raft::Index>(index)));
  }
  bool sends_snapshot() const override {
    for (const auto& [peer, progress] : core().progress()) {
      if (progress.state == old::raft::ProgressState::snapshot) return true;
    }
    return false;
  }
  const raft::Core* present_core() const override { return nullptr; }

 private:
  const old::raft::Core& core() const { return driver_.core(); }

  old::node::LeaseView& begun(const raft::InitialState& initial) {
    view_.publish_applied(number<old::raft::Index>(initial.applied));
    return view_;
  }

  void show_lease() {
    const old::raft::LeaseState state = view_.load();
    const raft::LeaseState shown{
        number<raft::Term>(state.term), instant<raft::HolderInstant>(state.end),
        number<raft::Index>(state.commit), number<raft::Index>(state.commit), raft::kNoClass};
    if (shown == ports_.view.load()) return;
    ports_.view.publish(shown);
  }

  // Transport
  void send(old::raft::NodeId to, old::net::PeerMessage message) override {
    show_lease();
    auto translated = to_new(message);
    LEASEHOLD_ASSERT(translated.has_value());
    ports_.transport.send(number<raft::NodeId>(to), *std::move(translated));
  }

  // Storage
  void persist(old::raft::PersistBatch batch) override { ports_.storage.persist(to_new(batch)); }
  void read(const old::storage::ReadRequest& request) override {
    ports_.storage.read({request.token, number<raft::Index>(request.first),
                         number<raft::Index>(request.last), request.bytes_max});
  }

  // Applier
  void apply(std::vector<old::raft::Entry> entries) override {
    show_lease();
    ports_.applier.apply(to_new(entries));
  }
  void install(const old::raft::SnapshotId& id) override {
    show_lease();
    ports_.applier.install(to_new(id));
  }

  // Snapshots
  void make_durable() override { ports_.snapshots.make_durable(); }
  void take() override { ports_.snapshots.take(); }
  void read(std::uint64_t token, std::uint64_t tag, std::uint64_t offset,
            std::size_t bytes) override {
    ports_.snapshots.read(token, tag, offset, bytes);
  }
  void release(std::uint64_t tag) override { ports_.snapshots.release(tag); }
  void store(const old::raft::ReceivedChunk& received) override {
    ports_.snapshots.store(to_new(received));
  }
  void discard() override { ports_.snapshots.discard(); }

  // Observer
  void on_event(const old::raft::Event& event) override { ports_.observer.on_event(to_new(event)); }

  const Ports ports_;
  old::node::LeaseView view_;
  old::node::Callers callers_;
  const lease::Timing timing_;
  mutable std::optional<old::raft::Membership> known_;
  mutable raft::Membership membership_;
  std::optional<Error> failure_;
  old::node::Driver driver_;
};

}  // namespace

std::unique_ptr<sim::RunningReplica> make_earlier(const replica::DriverOptions& options,
                                                  raft::InitialState initial,
                                                  const sim::RunningReplica::Ports& ports,
                                                  lease::Now now) {
  return std::make_unique<EarlierReplica>(options, initial, ports, now);
}

}  // namespace leasehold::mixed
