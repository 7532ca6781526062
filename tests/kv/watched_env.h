// The files under a store, watched: a test ends the process at the N-th change of them, makes them
// fail, and learns when something that has to be durable is not.
#pragma once

#include <rocksdb/env.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace leasehold::kv::testing {

/// What the process ends with at the chosen change.
inline constexpr int kKilled = 9;
/// What it ends with when a store names a database live that a power cut could still take.
inline constexpr int kNotDurable = 7;

class WatchedEnv final : public rocksdb::EnvWrapper {
 public:
  WatchedEnv() : EnvWrapper(rocksdb::Env::Default()) {}

  /// The process ends before the change with this number, from 1 on; 0: never.
  std::atomic<std::uint64_t> kill_at{0};
  std::atomic<std::uint64_t> changes{0};
  /// Every sync of a file fails.
  std::atomic<bool> failing{false};
  /// Every sync of a file finds no space.
  std::atomic<bool> full{false};

  rocksdb::Status NewWritableFile(const std::string& name,
                                  std::unique_ptr<rocksdb::WritableFile>* result,
                                  const rocksdb::EnvOptions& options) override {
    change();
    const rocksdb::Status status = EnvWrapper::NewWritableFile(name, result, options);
    if (!status.ok()) return status;
    made(name);
    *result = std::make_unique<File>(*this, name, std::move(*result));
    return status;
  }
  rocksdb::Status NewDirectory(const std::string& name,
                               std::unique_ptr<rocksdb::Directory>* result) override {
    const rocksdb::Status status = EnvWrapper::NewDirectory(name, result);
    if (status.ok()) *result = std::make_unique<Folder>(*this, name, std::move(*result));
    return status;
  }
  rocksdb::Status RenameFile(const std::string& from, const std::string& to) override {
    change();
    if (to.size() > 5 && to.substr(to.size() - 5) == "/LIVE") check_durable(from);
    const rocksdb::Status status = EnvWrapper::RenameFile(from, to);
    if (status.ok()) made(to);
    return status;
  }
  rocksdb::Status DeleteFile(const std::string& name) override {
    change();
    return EnvWrapper::DeleteFile(name);
  }
  rocksdb::Status CreateDir(const std::string& name) override {
    change();
    const rocksdb::Status status = EnvWrapper::CreateDir(name);
    if (status.ok()) made(name);
    return status;
  }
  rocksdb::Status DeleteDir(const std::string& name) override {
    change();
    return EnvWrapper::DeleteDir(name);
  }
  rocksdb::Status LinkFile(const std::string& from, const std::string& to) override {
    change();
    return EnvWrapper::LinkFile(from, to);
  }

 private:
  class File final : public rocksdb::WritableFileWrapper {
   public:
    File(WatchedEnv& env, std::string name, std::unique_ptr<rocksdb::WritableFile> file)
        : WritableFileWrapper(file.get()),
          env_(env),
          name_(std::move(name)),
          file_(std::move(file)) {}
    rocksdb::Status Append(const rocksdb::Slice& data) override {
      env_.change();
      env_.dirty(name_, true);
      return WritableFileWrapper::Append(data);
    }
    rocksdb::Status Append(const rocksdb::Slice& data,
                           const rocksdb::DataVerificationInfo& /*info*/) override {
      return Append(data);
    }
    rocksdb::Status Sync() override {
      env_.change();
      if (env_.failing) return rocksdb::Status::IOError("a failure of the test");
      if (env_.full) return rocksdb::Status::NoSpace("no space of the test");
      env_.dirty(name_, false);
      return WritableFileWrapper::Sync();
    }
    rocksdb::Status Fsync() override { return Sync(); }

   private:
    WatchedEnv& env_;
    const std::string name_;
    const std::unique_ptr<rocksdb::WritableFile> file_;
  };

  class Folder final : public rocksdb::Directory {
   public:
    Folder(WatchedEnv& env, std::string name, std::unique_ptr<rocksdb::Directory> folder)
        : env_(env), name_(std::move(name)), folder_(std::move(folder)) {}
    rocksdb::Status Fsync() override {
      env_.change();
      env_.dirty(name_, false);
      return folder_->Fsync();
    }
    rocksdb::Status Close() override { return folder_->Close(); }

   private:
    WatchedEnv& env_;
    const std::string name_;
    const std::unique_ptr<rocksdb::Directory> folder_;
  };

  void change() {
    if (++changes == kill_at) std::_Exit(kKilled);
  }
  void made(const std::string& name) { dirty(name.substr(0, name.rfind('/')), true); }
  void dirty(const std::string& name, bool is) {
    const std::lock_guard lock(mutex_);
    dirty_[name] = is;
  }
  /// LIVE is about to name a database: its files, its folder and its name have to be durable.
  void check_durable(const std::string& fresh) {
    const std::lock_guard lock(mutex_);
    const std::string store = fresh.substr(0, fresh.rfind('/'));
    std::string newest;
    for (const auto& [name, is] : dirty_) {
      const std::string folder = name.substr(0, name.rfind('/'));
      const std::string last = name.substr(name.rfind('/') + 1);
      if (folder == store && last.substr(0, 3) == "db-") newest = std::max(newest, name);
    }
    for (const auto& [name, is] : dirty_) {
      const std::string last = name.substr(name.rfind('/') + 1);
      const bool data = last.find(".sst") != std::string::npos ||
                        last.substr(0, 9) == "MANIFEST-" || last == "CURRENT";
      const bool inside = name.substr(0, name.rfind('/')) == newest && !newest.empty();
      if (is && (name == fresh || name == newest || (inside && data))) std::_Exit(kNotDurable);
    }
  }

  std::mutex mutex_;
  std::map<std::string, bool> dirty_;
};

}  // namespace leasehold::kv::testing
