#include <leasehold/replica/callers.h>
#include <leasehold/sim/world/running_replica.h>

#include <algorithm>

namespace leasehold::sim {
namespace {

class PresentReplica : public RunningReplica {
 public:
  PresentReplica(const replica::DriverOptions& options, raft::InitialState initial,
                 const Ports& ports, lease::Now now)
      : others_(ports.others),
        process_(make_process(ports, now)),
        healthy_(ports.shared != nullptr ? ports.shared->healthy : nullptr),
        driver_(shares(options, process_.get()), std::move(initial),
                replica::Driver::Ports{ports.transport, ports.storage, ports.applier,
                                       ports.snapshots, ports.view, callers_, ports.observer},
                now) {
    if (process_) process_->add(driver_);
  }

  void handle_batch(lease::Now now, std::vector<replica::Event>& events) override {
    if (!process_) return driver_.handle_batch(now, events);
    std::vector<replica::Event> left;
    follow(left);
    for (replica::Event& event : events) {
      const auto* ended = std::get_if<replica::PeerEnded>(&event);
      if (ended != nullptr && others_ != nullptr) others_->ended(*ended);
      if (!process_->take(now, event)) left.push_back(std::move(event));
      follow(left);
    }
    events.clear();
    driver_.handle_batch(now, left);
    process_->handled(driver_);
    if (others_ != nullptr) others_->turns(now);
    process_->set_healthy(healthy_(now));
    process_->finish(now);
  }
  std::vector<std::function<void()>> take_completions() override {
    return driver_.take_completions();
  }
  raft::PromiseInstant next_deadline() const override {
    raft::PromiseInstant next = driver_.next_deadline();
    if (others_ != nullptr) next = std::min(next, others_->next_deadline());
    return process_ ? std::min(next, process_->next_deadline()) : next;
  }
  raft::Index applied() const override { return driver_.applied(); }
  const std::optional<Error>& failure() const override { return driver_.failure(); }
  replica::Applied complete(replica::AppliedEntries applied) override {
    return replica::complete(std::move(applied), callers_);
  }

  raft::Role role() const override { return driver_.core().role(); }
  raft::Term term() const override { return driver_.core().term(); }
  raft::Index commit_index() const override { return driver_.core().commit_index(); }
  raft::Index durable_index() const override { return driver_.core().durable_index(); }
  const lease::Timing& timing() const override { return driver_.core().timing(); }
  const raft::Membership& membership() const override { return driver_.core().membership(); }
  raft::StoredPromise stored_promise() const override {
    return driver_.core().hard_state().promise;
  }
  raft::PromiseInstant promise_until() const override { return driver_.core().promise_until(); }
  raft::LogId log_base() const override { return driver_.core().log().base(); }
  raft::LogId log_last() const override { return driver_.core().log().last(); }
  std::optional<raft::Term> term_at(raft::Index index) const override {
    return driver_.core().log().term_at(index);
  }
  raft::Membership membership_at(raft::Index index) const override {
    return driver_.core().log().membership_at(index);
  }
  bool sends_snapshot() const override {
    const raft::Peers& peers = driver_.core().progress();
    return std::any_of(peers.begin(), peers.end(), [](const auto& peer) {
      return peer.second.state == raft::ProgressState::snapshot;
    });
  }
  replica::ProcessDriver* process() override { return process_.get(); }
  const raft::Core* present_core() const override { return &driver_.core(); }

 private:
  static std::unique_ptr<replica::ProcessDriver> make_process(const Ports& ports, lease::Now now) {
    if (ports.shared == nullptr) return nullptr;
    return std::make_unique<replica::ProcessDriver>(ports.shared->options, ports.shared->remembered,
                                                    ports.transport, ports.shared->store, now);
  }
  /// What follows for the first group goes to `events`.
  void follow(std::vector<replica::Event>& events) {
    for (replica::ProcessDriver::Follows& one : process_->take_follows()) {
      if (one.driver == &driver_) {
        events.push_back(std::move(one.event));
      } else {
        others_->give(one.driver->group(), std::move(one.event));
      }
    }
  }
  static replica::DriverOptions shares(replica::DriverOptions options,
                                       replica::ProcessDriver* process) {
    if (process != nullptr) options.core.shared = &process->promises();
    return options;
  }

  OtherGroups* const others_;
  replica::Callers callers_;
  std::unique_ptr<replica::ProcessDriver> process_;
  std::function<bool(lease::Now)> healthy_;
  replica::Driver driver_;
};

}  // namespace

std::unique_ptr<RunningReplica> make_replica(const replica::DriverOptions& options,
                                             raft::InitialState initial,
                                             const RunningReplica::Ports& ports, lease::Now now) {
  return std::make_unique<PresentReplica>(options, std::move(initial), ports, now);
}

}  // namespace leasehold::sim
