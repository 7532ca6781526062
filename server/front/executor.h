// A thread that runs tasks.
#pragma once

#include <functional>

namespace leasehold::server {

/// Runs tasks on its thread, one after the other. post() may be called from any thread.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void post(std::function<void()> task) = 0;
};

}  // namespace leasehold::server
