// Makes the records of a recording out of what passes through a replica's driver.
#pragma once

#include <leasehold/replica/tap.h>
#include <leasehold/story/core_watch.h>
#include <leasehold/story/record.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::server {

/// Neither keys nor values nor anything else that a client or an operator has written gets into a
/// record: of an entry only its place in the log, of a forwarded command only its number.
///
/// The driver's thread fills it, another one empties it. It ends by itself: when its time is over,
/// or when nobody has taken from it for a while.
class TraceRecorder final : public replica::Tap {
 public:
  /// Records that wait to be taken, of some 400 bytes each. Those that come then are dropped, and
  /// counted.
  static constexpr std::size_t kWaitingMax = 20'000;
  static constexpr lease::Duration kUnaskedMax = std::chrono::seconds(5);

  struct Taken {
    std::vector<story::Record> records;
    std::uint64_t dropped = 0;  ///< since the beginning
    bool more = false;
    std::string ended;  ///< TraceTaken::ended
  };

  /// `node`: the replica's number in its group.
  TraceRecorder(raft::NodeId node, raft::Incarnation process, lease::HolderInstant begin,
                lease::Duration span);

  Taken take(std::size_t most, lease::HolderInstant now);
  void stop();
  /// Whether it records no more.
  bool over(lease::HolderInstant now);
  lease::HolderInstant until() const { return until_; }

  bool begin(lease::Now now, const raft::Core& core, raft::Index applied) override;
  void received(const raft::Peer& from, const wire::Payload& message) override;
  void released() override;
  void turned(const raft::Core& core) override;
  void sent(raft::NodeId to, const wire::Payload& message) override;
  void event(const raft::Event& event) override;
  void stopped(const std::optional<Error>& failure) override;

 private:
  /// The promise clock's instants, as the holder's clock shows them if the machine does not sleep.
  struct OwnTime final : story::TrueTime {
    lease::Now now;
    story::Duration of(raft::HolderInstant local) const override;
    story::Duration of(raft::PromiseInstant local) const override;
  };

  story::Duration at() const { return time_.now.holder.since_origin(); }
  story::Record record(story::Kind kind) const;
  void tell_state(const raft::Core& core);
  void tell_mark(const char* what, raft::Index index, std::string text);
  void tell_sleep(lease::Now now);
  void message(story::Kind kind, raft::NodeId peer, const wire::Payload& message);
  void add(const story::Record& record);
  bool over_locked(lease::HolderInstant now);

  const raft::NodeId node_;
  const raft::Incarnation process_;
  const lease::HolderInstant until_;

  // The driver's thread.
  OwnTime time_;
  story::CoreWatch watch_;
  bool fresh_ = true;
  raft::Index applied_;
  raft::Index durable_;

  std::mutex mutex_;
  // Under mutex_.
  std::deque<story::Record> waiting_;
  std::uint64_t dropped_ = 0;
  std::uint64_t gap_ = 0;  ///< of these, since the last record that found room
  story::Duration gap_at_{0};
  lease::HolderInstant asked_;
  std::string ended_;
};

}  // namespace leasehold::server
