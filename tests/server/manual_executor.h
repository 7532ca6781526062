// An executor that waits for its test.
#pragma once

#include <leasehold/server/front/session.h>

#include <functional>
#include <utility>
#include <vector>

namespace leasehold::server {

/// Keeps tasks until the test runs them.
class ManualExecutor final : public Executor {
 public:
  void post(std::function<void()> task) override { tasks_.push_back(std::move(task)); }
  bool waits() const { return !tasks_.empty(); }
  void run() {
    while (!tasks_.empty()) {
      for (auto& task : std::exchange(tasks_, {})) task();
    }
  }

 private:
  std::vector<std::function<void()>> tasks_;
};

}  // namespace leasehold::server
