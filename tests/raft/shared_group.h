// Groups of nodes that share promises between their processes.
#pragma once

#include "processes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace leasehold::raft::test {

/// One of the groups.
class SharedGroup : public Group {
 public:
  explicit SharedGroup(int size = 3, lease::Timing timing = exact(), std::uint64_t seed = 1,
                       const std::vector<int>& witnesses = {})
      : SharedGroup(std::make_shared<Processes>(size, timing), GroupId(1), size, timing, seed,
                    witnesses) {}
  SharedGroup(std::shared_ptr<Processes> processes, GroupId id, int size, lease::Timing timing,
              std::uint64_t seed, const std::vector<int>& witnesses = {})
      : Group(size, timing, seed, Duration(0), witnesses),
        processes_(std::move(processes)),
        id_(id),
        size_(size),
        timing_(timing) {
    processes_->add(*this);
    for (int i = 1; i <= size; ++i) start_core(i);
    jump(timing.lease);
  }
  GroupId id() const { return id_; }
  Processes& processes() { return *processes_; }
  Host& host(int id) { return processes_->host(id); }
  const lease::Support& support(int member, int holder) {
    return *host(member).promises().support_of(peer_of(holder).uuid);
  }
  void rely(int member, int holder) {
    host(member).promises().rely(peer_of(holder).uuid, now().promise);
  }
  /// The end of the lease as a reader of this copy of the view would see it now.
  HolderInstant end_of(int id, const LeaseState& copy) {
    if (copy.lease_class == kNoClass) return copy.end;
    return std::max(copy.end, host(id).promises().lease_class(copy.lease_class).end);
  }
  HolderInstant view_end(int id) { return end_of(id, replica(id).view); }
  int size() const { return size_; }
  /// The core of the node's process, which has begun.
  void start_core(int id) {
    replica(id).options.shared = &host(id).promises();
    restart(id);
  }
  void restart_process(int id) { processes_->restart(id); }
  /// The process of `id` learns whom its core has let go of.
  void take_releases(int id) {
    for (const Release& release : replica(id).releases) {
      host(id).promises().released(id_, release);
    }
    replica(id).releases.clear();
  }

  /// A beat of `id` that all others acknowledge at once, except `without`.
  void beat(int id, const std::vector<int>& without = {}, Duration duration = Duration(0)) {
    processes_->begin_beat(id, duration);
    for (int other = 1; other <= size_; ++other) {
      if (other == id || !replica(other).up) continue;
      if (std::find(without.begin(), without.end(), other) != without.end()) continue;
      processes_->hear(other, processes_->beat_to(id, other));
      if (const auto reply = processes_->reply(other, id)) processes_->acknowledge(id, *reply);
    }
  }
  /// A leader to whose process all others are bound.
  int bound_leader() {
    const int leader = elect();
    beat(leader);
    run(timing_.heartbeat);
    return leader;
  }
  /// Nothing of the group arrives any more; beats do.
  void silence() {
    filter = [](const Envelope&) { return false; };
  }
  void beats(int id, Duration span, const std::vector<int>& without = {}) {
    for (Duration at{0}; at < span; at += timing_.heartbeat) {
      jump(timing_.heartbeat);
      beat(id, without);
    }
  }
  bool votes(int id, int candidate, std::uint64_t term) {
    in_flight().clear();
    step(candidate, id, VoteRequest{Term(term), core(candidate).log().last()});
    for (const Envelope& sent : in_flight()) {
      const auto* reply = std::get_if<VoteReply>(&sent.message);
      if (reply != nullptr && reply->request_term == Term(term)) return reply->granted;
    }
    ADD_FAILURE() << "no answer";
    return false;
  }
  std::vector<int> others(int id) const {
    std::vector<int> found;
    for (int other = 1; other <= size_; ++other) {
      if (other != id) found.push_back(other);
    }
    return found;
  }

 protected:
  PromiseInstant next_end() const override { return processes_->next_end(); }
  void look_at_ends() override { processes_->look_at_ends(); }

 private:
  std::shared_ptr<Processes> processes_;
  GroupId id_;
  int size_;
  lease::Timing timing_;
};

}  // namespace leasehold::raft::test
