// The first failure of what a process serves.
#pragma once

#include <leasehold/base/result.h>

#include <mutex>
#include <optional>
#include <utility>

namespace leasehold::server {

/// Any thread.
class Failure {
 public:
  void set(Error error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }
  std::optional<Error> get() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Error> error_;
};

}  // namespace leasehold::server
