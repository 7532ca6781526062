// Processes whose promises several groups share: beats, disks and time move only when a test says
// so.
#pragma once

#include "group.h"

#include <leasehold/raft/process_promises.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::raft::test {

inline lease::Timing exact() {
  lease::Timing timing;
  timing.max_clock_drift_ppm = 0;
  timing.margin = Duration(0);
  return timing;
}

/// The promises of one node's process, and what of them is on its disk.
class Host {
 public:
  Host(const Peer& self, const lease::Timing& timing, Now now)
      : options_{self, timing, 100 * timing.lease} {
    start(now);
  }
  ProcessPromises& promises() { return *promises_; }
  const ProcessPromises& promises() const { return *promises_; }
  /// What has followed. What has to be remembered is durable at once, or by sync().
  ProcessReady take() {
    ProcessReady ready;
    promises_->take_ready(ready);
    if (ready.remember.empty()) return ready;
    unsynced_.push_back({ready.write, ready.remember});
    if (auto_sync) sync(ready);
    return ready;
  }
  void sync(ProcessReady& ready) {
    if (unsynced_.empty()) return;
    for (const Write& write : unsynced_) {
      for (const RememberedSupport& support : write.what) disk_[support.directory] = support;
    }
    promises_->persisted(unsynced_.back().number);
    unsynced_.clear();
    ProcessReady more;
    promises_->take_ready(more);
    ready.replies.insert(ready.replies.end(), more.replies.begin(), more.replies.end());
  }
  /// Its process has ended, and the next one has begun.
  void restart(Now now) {
    options_.self.process.incarnation = options_.self.process.incarnation.next();
    unsynced_.clear();
    start(now);
  }
  const Peer& self() const { return options_.self; }
  void share_with(std::vector<Peer> peers) {
    peers_ = std::move(peers);
    promises_->set_peers(peers_);
  }

  bool auto_sync = true;

 private:
  struct Write {
    std::uint64_t number;
    std::vector<RememberedSupport> what;
  };
  void start(Now now) {
    std::vector<RememberedSupport> remembered;
    for (const auto& [directory, support] : disk_) remembered.push_back(support);
    promises_ = std::make_unique<ProcessPromises>(options_, remembered, now);
    promises_->set_peers(peers_);
  }

  ProcessOptions options_;
  std::vector<Peer> peers_;
  std::unique_ptr<ProcessPromises> promises_;
  std::map<Uuid, RememberedSupport> disk_;
  std::deque<Write> unsynced_;
};

class SharedGroup;

/// The processes of all nodes, and the groups that they share.
class Processes {
 public:
  struct Beat {
    Peer from;
    ProcessBeat message;
  };
  struct Reply {
    int by = 0;
    int to = 0;
    ProcessBeatReply message;
  };

  /// Of the nodes 1 to `size`.
  Processes(int size, const lease::Timing& timing);
  void add(SharedGroup& group) { groups_.push_back(&group); }
  Host& host(int id) { return hosts_.at(id); }
  /// The process of the node ends, and so do its cores.
  void crash(int id);
  /// The next one begins.
  void restart(int id);

  /// Begins a beat, with the D of all unless another one is given.
  void begin_beat(int id, Duration duration = Duration(0));
  /// What it has sent to `to` with its newest beat.
  Beat beat_to(int id, int to) { return newest_.at({id, to}); }
  void hear(int to, const Beat& beat);
  void acknowledge(int id, const Reply& reply);
  void ended(int id, const Peer& peer);
  void sync(int id);
  PromiseInstant next_end() const;
  void look_at_ends();
  /// Takes a reply that `by` has sent to `to`, if there is one.
  std::optional<Reply> reply(int by, int to);
  /// On their way.
  std::vector<Reply>& replies() { return replies_; }

 private:
  Now now() const;
  void carry_out(int id, const ProcessReady& ready);

  lease::Timing timing_;
  std::vector<SharedGroup*> groups_;
  std::map<int, Host> hosts_;
  std::map<std::pair<int, int>, Beat> newest_;
  std::vector<Reply> replies_;
};

}  // namespace leasehold::raft::test
