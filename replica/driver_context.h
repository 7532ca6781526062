// What the parts of a Driver share. Not an interface for users.
#pragma once

#include <leasehold/replica/driver.h>
#include <leasehold/replica/tap.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::replica {

enum class WaiterKind : std::uint8_t { read, group_call, log_read };

/// The deadlines of reads, of calls about the group and of readers of the log, the earliest first;
/// ProposalTable has those of the commands. An entry is not removed when its waiter completes: it
/// is passed over when it comes up, or swept when most entries are such.
class Deadlines {
 public:
  struct Entry {
    raft::PromiseInstant at;
    WaiterKind kind = WaiterKind::read;
    std::uint64_t number = 0;
  };

  void add(raft::PromiseInstant at, WaiterKind kind, std::uint64_t number) {
    heap_.push_back({at, kind, number});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  const Entry& earliest() const { return heap_.front(); }
  void pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
  }
  /// Keeps only the entries whose waiter still exists.
  template <class StillWaits>
  void sweep(StillWaits still_waits) {
    heap_.erase(std::remove_if(heap_.begin(), heap_.end(),
                               [&](const Entry& entry) { return !still_waits(entry); }),
                heap_.end());
    std::make_heap(heap_.begin(), heap_.end(), later);
  }
  void clear() { heap_.clear(); }

 private:
  /// A total order, so that the order of expiry never depends on the library's heap.
  static bool later(const Entry& a, const Entry& b) {
    if (a.at != b.at) return a.at > b.at;
    if (a.kind != b.kind) return a.kind > b.kind;
    return a.number > b.number;
  }

  std::vector<Entry> heap_;
};

/// The completions that became due, in order.
class Completions {
 public:
  void add(ProposeCompletion& done, ProposeResult result) {
    if (!done) return;
    due_.push_back([done = std::move(done), result = std::move(result)] { done(result); });
  }
  void add(ReadCompletion& done, ReadResult result) {
    if (!done) return;
    due_.push_back([done = std::move(done), result] { done(result); });
  }
  void add(LogReadCompletion& done, Result<LogPart> result) {
    if (!done) return;
    due_.push_back([done = std::move(done), result = std::move(result)] { done(result); });
  }
  void add(LogCutCompletion& done, Result<LogCut> result) {
    if (!done) return;
    due_.push_back([done = std::move(done), result = std::move(result)] { done(result); });
  }
  void add(ChangeCompletion& done, const ChangeResult& result) {
    if (!done) return;
    due_.push_back([done = std::move(done), result] { done(result); });
  }
  void add(SettingsCompletion& done, const SettingsResult& result) {
    if (!done) return;
    due_.push_back([done = std::move(done), result] { done(result); });
  }
  void add(TransferCompletion& done, const TransferResult& result) {
    if (!done) return;
    due_.push_back([done = std::move(done), result] { done(result); });
  }
  void add(std::function<void()> call) { due_.push_back(std::move(call)); }
  std::vector<std::function<void()>> take() { return std::exchange(due_, {}); }

 private:
  std::vector<std::function<void()>> due_;
};

/// Lives as long as the Driver; the parts hold a reference.
struct DriverContext {
  DriverContext(const DriverOptions& driver_options, raft::InitialState initial,
                const Driver::Ports& driver_ports, lease::Now now)
      : limits(driver_options),  // NOLINT(cppcoreguidelines-slicing): they are its base
        core(driver_options.core, std::move(initial), now),
        ports(driver_ports) {}

  void send(raft::NodeId to, wire::Payload payload) {
    if (tap != nullptr) tap->sent(to, payload);
    ports.transport.send(to, wire::PeerMessage{core.options().group, std::move(payload)});
  }
  /// Of a call that has a span: at the time of the turn.
  void note(Span& span, std::string_view station,
            std::vector<SpanAttribute> attributes = {}) const {
    span.station(station, turn_began, std::move(attributes));
  }
  bool leads() const { return core.role() == raft::Role::leader; }
  /// Whether it gets every entry that is appended from now on: a member, and not on its way out.
  bool stays(raft::NodeId id) const {
    const raft::Membership& newest = core.membership();
    return newest.find(id) != nullptr &&
           !std::binary_search(newest.leaving.begin(), newest.leaving.end(), id);
  }

  const Limits limits;
  /// Null, as a rule: nobody records.
  std::shared_ptr<Tap> tap;
  raft::Core core;
  Driver::Ports ports;
  DriverCounters counters;
  Completions completions;
  Deadlines deadlines;
  /// Names the reads of the log: the applier's and the peers'.
  std::uint64_t last_read_token = 0;
  /// The state machine has applied and shows this index.
  raft::Index applied;
  /// Of the turn that runs.
  lease::HolderInstant turn_began;
  /// The disk has no space left for the log, or for the state machine.
  bool disk_full = false;
};

}  // namespace leasehold::replica
