// The log of one group, in files that it may share with the logs of others.
#pragma once

#include <leasehold/base/assert.h>
#include <leasehold/base/result.h>
#include <leasehold/raft/log.h>
#include <leasehold/storage/log_threads.h>
#include <leasehold/storage/storage.h>

#include <memory>
#include <optional>
#include <vector>

namespace leasehold::storage {

/// One user thread at a time. The threads outlive it. The calls before start() block on the disk,
/// those after it never do; the destructor waits until what it took is durable.
///
/// What confirm_set() and form() lay behind start() is durable when the sink's persisted() says so,
/// with the id 0; nothing else may be laid or given to persist() until then.
class GroupLog final : public Storage {
 public:
  GroupLog(LogThreads& threads, raft::GroupId group);
  ~GroupLog() override;
  GroupLog(const GroupLog&) = delete;
  GroupLog& operator=(const GroupLog&) = delete;

  raft::GroupId group() const { return group_; }

  // See SegmentLog.
  const std::vector<raft::Member>& confirmed_set() const { return confirmed().members; }
  const std::optional<raft::GroupSettings>& confirmed_settings() const {
    return confirmed().settings;
  }
  Result<void> confirm_set(std::vector<raft::Member> members,
                           const std::optional<raft::GroupSettings>& settings);
  Result<void> form(raft::LogId base);
  Result<void> join();
  bool formed() const { return formed_; }
  bool joined() const;
  raft::InitialState take_initial_state();
  void start(StorageSink& sink);
  /// What it was opened with, and has laid since. Before start().
  FoundGroup found() && {
    LEASEHOLD_ASSERT(!started_);
    return std::move(found_);
  }
  /// Of the whole log. Any thread.
  std::uint64_t syncs() const { return threads_.store().syncs(); }

  void persist(raft::PersistBatch batch) override;
  void read(const ReadRequest& request) override;
  bool behind() const override { return threads_.behind(); }

 private:
  const raft::Membership& confirmed() const;
  void forget_memberships();
  Result<void> lay(Foundation foundation);

  LogThreads& threads_;
  const raft::GroupId group_;
  /// Its shape and its hard state go on with what persist() takes. Behind start() and
  /// take_initial_state() only the core knows the base's membership, and those behind it.
  FoundGroup found_;
  bool formed_ = false;
  bool state_taken_ = false;
  bool started_ = false;
};

}  // namespace leasehold::storage
