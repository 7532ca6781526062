// A disk in memory that remembers every write and every sync.
#pragma once

#include <leasehold/base/random.h>
#include <leasehold/storage/disk.h>
#include <leasehold/storage/segment_record.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::storage::testing {

/// The files of a folder by name.
using Image = std::map<std::string, std::string>;

/// What happened to a disk, in order.
struct DiskEvent {
  enum class Kind { create, write, sync, remove, note };
  Kind kind = Kind::note;
  std::string name;          ///< of the file
  std::uint64_t offset = 0;  ///< of a write; the number of a note
  std::string bytes;         ///< of a write, or all of a new file
};

/// The state of a CrashDisk, which outlives it: the log owns the disk.
class DiskHistory {
 public:
  explicit DiskHistory(Image image = {}) : before_(image), now_(std::move(image)) {}
  /// After the death of a process alone: reads see `cached`, but the disk holds only `durable`, and
  /// a sync stores nothing of the difference, as after a sync that failed.
  DiskHistory(Image durable, Image cached) : before_(std::move(durable)), now_(std::move(cached)) {}

  /// What the tests want to find in the list of events: "batch 7 was acknowledged".
  void note(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    events_.push_back({DiskEvent::Kind::note, {}, number, {}});
  }
  /// With every write, as the death of the process alone leaves it.
  Image now() const {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  /// From now on the files together have at most this many bytes.
  void set_capacity(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    capacity_ = bytes;
  }
  /// From now on no file can be made, as on a full disk.
  void fill_up(bool full) { set_capacity(full ? 0 : kEndless); }
  /// The next `count` syncs fail, and store nothing of what was written before them, now or ever:
  /// Linux does the same, and there a later sync succeeds.
  void break_syncs(std::uint64_t count) {
    const std::lock_guard lock(mutex_);
    broken_syncs_ = count;
  }
  /// From now on making a file fails, for another reason than space.
  void break_creation() {
    const std::lock_guard lock(mutex_);
    creation_broken_ = true;
  }
  /// From now on making a file takes until this is called with false.
  void hold_creation(bool held) {
    const std::lock_guard lock(mutex_);
    creation_held_ = held;
    goes_on_.notify_all();
  }
  /// From now on a sync takes until this is called with false.
  void hold_syncs(bool held) {
    const std::lock_guard lock(mutex_);
    syncs_held_ = held;
    goes_on_.notify_all();
  }
  /// From now on a read takes until this is called with false.
  void hold_reads(bool held) {
    const std::lock_guard lock(mutex_);
    reads_held_ = held;
    goes_on_.notify_all();
  }
  void break_removal(bool broken = true) {
    const std::lock_guard lock(mutex_);
    removal_broken_ = broken;
  }
  std::uint64_t syncs_asked() const {
    const std::lock_guard lock(mutex_);
    return syncs_asked_;
  }
  std::uint64_t reads_asked() const {
    const std::lock_guard lock(mutex_);
    return reads_asked_;
  }
  std::uint64_t creations_asked() const {
    const std::lock_guard lock(mutex_);
    return creations_asked_;
  }
  Image before() const { return before_; }
  std::vector<DiskEvent> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }

 private:
  friend class CrashDisk;
  friend class CrashFile;
  mutable std::mutex mutex_;
  Image before_;
  Image now_;
  Image removed_;  ///< removed files that are still read
  std::vector<DiskEvent> events_;
  static constexpr std::uint64_t kEndless = std::uint64_t{1} << 50U;
  std::uint64_t left() const {
    std::uint64_t used = 0;
    for (const auto& file : now_) used += file.second.size();
    return used < capacity_ ? capacity_ - used : 0;
  }
  std::uint64_t capacity_ = kEndless;
  std::uint64_t broken_syncs_ = 0;
  bool creation_broken_ = false;
  bool creation_held_ = false;
  bool syncs_held_ = false;
  bool reads_held_ = false;
  std::uint64_t reads_asked_ = 0;
  std::condition_variable goes_on_;
  bool removal_broken_ = false;
  std::uint64_t syncs_asked_ = 0;
  std::uint64_t creations_asked_ = 0;
};

class CrashFile final : public DiskFile {
 public:
  CrashFile(std::shared_ptr<DiskHistory> history, std::string name)
      : history_(std::move(history)), name_(std::move(name)) {
    size_ = history_->now_.at(name_).size();
  }
  std::uint64_t size() const override { return size_; }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    std::unique_lock lock(history_->mutex_);
    ++history_->reads_asked_;
    history_->goes_on_.wait(lock, [this] { return !history_->reads_held_; });
    const auto found = history_->now_.find(name_);
    (found == history_->now_.end() ? history_->removed_.at(name_) : found->second)
        .copy(to, bytes, offset);
    return {};
  }
  Result<void> write(std::uint64_t offset, std::string_view bytes) override {
    const std::lock_guard lock(history_->mutex_);
    history_->now_.at(name_).replace(offset, bytes.size(), bytes);
    history_->events_.push_back({DiskEvent::Kind::write, name_, offset, std::string(bytes)});
    return {};
  }
  Result<void> sync() override {
    std::unique_lock lock(history_->mutex_);
    ++history_->syncs_asked_;
    history_->goes_on_.wait(lock, [this] { return !history_->syncs_held_; });
    if (history_->broken_syncs_ > 0) {
      --history_->broken_syncs_;
      return Error{ErrorCode::io, "cannot sync " + name_};
    }
    history_->events_.push_back({DiskEvent::Kind::sync, name_, 0, {}});
    return {};
  }

 private:
  std::shared_ptr<DiskHistory> history_;
  std::string name_;
  std::uint64_t size_ = 0;
};

class CrashDisk final : public Disk {
 public:
  explicit CrashDisk(std::shared_ptr<DiskHistory> history) : history_(std::move(history)) {}

  const std::string& path() const override { return path_; }
  Result<std::vector<std::string>> list() const override {
    const std::lock_guard lock(history_->mutex_);
    std::vector<std::string> names;
    for (const auto& file : history_->now_) names.push_back(file.first);
    return names;
  }
  Result<std::optional<std::string>> load(const std::string& name,
                                          std::size_t bytes_max) const override {
    const std::lock_guard lock(history_->mutex_);
    const auto found = history_->now_.find(name);
    if (found == history_->now_.end()) return std::optional<std::string>();
    return std::optional<std::string>(found->second.substr(0, bytes_max));
  }
  Result<std::shared_ptr<DiskFile>> open(const std::string& name) const override {
    return std::shared_ptr<DiskFile>(std::make_shared<CrashFile>(history_, name));
  }
  Result<std::shared_ptr<DiskFile>> create(const std::string& name, std::string_view head,
                                           std::uint64_t size) override {
    {
      std::unique_lock lock(history_->mutex_);
      ++history_->creations_asked_;
      history_->goes_on_.wait(lock, [this] { return !history_->creation_held_; });
      if (history_->creation_broken_) return Error{ErrorCode::io, "cannot make " + name};
      if (history_->left() < size) {
        return Error{kNoSpace, "cannot make " + name + ": no space"};
      }
      std::string bytes(head);
      bytes.resize(size, '\0');
      history_->now_[name] = bytes;
      history_->events_.push_back({DiskEvent::Kind::create, name, 0, std::move(bytes)});
    }
    return open(name);
  }
  Result<void> remove(const std::string& name) override {
    const std::lock_guard lock(history_->mutex_);
    const auto found = history_->now_.find(name);
    if (history_->removal_broken_) return Error{ErrorCode::io, "cannot remove " + name};
    if (found == history_->now_.end()) return {};
    history_->removed_[name] = std::move(found->second);
    history_->now_.erase(found);
    history_->events_.push_back({DiskEvent::Kind::remove, name, 0, {}});
    return {};
  }
  Result<std::uint64_t> free_bytes() const override {
    const std::lock_guard lock(history_->mutex_);
    return history_->left();
  }

 private:
  std::shared_ptr<DiskHistory> history_;
  std::string path_ = "/a disk in memory";
};

}  // namespace leasehold::storage::testing
