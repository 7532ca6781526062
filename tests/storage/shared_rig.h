// A log of many groups on a disk in memory, and groups that write to it.
#pragma once

#include <leasehold/storage/shared_log.h>
#include <leasehold/tests/storage/segment_rig.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace leasehold::storage::testing {

inline Result<std::unique_ptr<SharedLog>> open_shared(
    const std::shared_ptr<DiskHistory>& history,
    const SegmentLogOptions& options = small_options()) {
  return SharedLog::open(options, std::make_unique<CrashDisk>(history));
}

inline std::size_t segments_of(const DiskHistory& history) {
  const Image image = history.now();
  return static_cast<std::size_t>(std::count_if(image.begin(), image.end(), [](const auto& file) {
    return file.first.find(".seg") != std::string::npos;
  }));
}

/// A group that writes the batches of a sequence.
class Writer {
 public:
  Writer(raft::GroupId group, std::uint64_t seed, Cuts cuts)
      : group_(group), sequence_(seed, cuts) {}

  void open(SharedLog& log) {
    auto opened = log.open_group(group_);
    ASSERT_TRUE(opened) << opened.error().message;
    log_ = std::move(opened).value();
    if (!log_->formed()) {
      members_ = three_voters(log.identity().uuid);
      ASSERT_TRUE(log_->confirm_set(members_.members, {}));
      ASSERT_TRUE(log_->form({}));
    }
    sink_ = std::make_unique<RecordingSink>();
    expect(log_->take_initial_state());
    log_->start(*sink_);
  }
  void expect(const raft::InitialState& state) {
    SCOPED_TRACE(group_.value());
    Model model = sequence_.model();
    if (model.base.id == raft::LogId{}) model.base.membership = members_;
    expect_initial_state(state, model);
  }
  void write(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) log_->persist(sequence_.next());
  }
  /// False: the log has failed.
  bool write_one() {
    write(1);
    return sink_->wait_persisted(raft::ReadyId(sequence_.number()));
  }
  void wait() {
    if (sequence_.number() == opened_at_) return;
    ASSERT_TRUE(sink_->wait_persisted(raft::ReadyId(sequence_.number())));
  }
  void expect_entries() {
    SCOPED_TRACE(group_.value());
    const Model& model = sequence_.model();
    if (model.entries.empty()) return;
    log_->read({++token_, model.base.id.index.next(), model.last().index, std::size_t{1} << 40U});
    ASSERT_TRUE(sink_->wait_read(token_));
    const auto entries = sink_->take_read(token_);
    ASSERT_TRUE(entries) << entries.error().message;
    EXPECT_TRUE(entries.value() == model.entries);
  }
  void close() {
    log_.reset();
    opened_at_ = sequence_.number();
  }
  raft::GroupId group() const { return group_; }
  GroupLog& log() { return *log_; }
  RecordingSink& sink() { return *sink_; }

 private:
  raft::GroupId group_;
  Sequence sequence_;
  raft::Membership members_;
  std::unique_ptr<RecordingSink> sink_;
  std::unique_ptr<GroupLog> log_;
  std::uint64_t opened_at_ = 0;
  std::uint64_t token_ = 0;
};

}  // namespace leasehold::storage::testing
