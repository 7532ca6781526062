// Child processes of a floor program that runs by itself.
#pragma once

#include <leasehold/base/result.h>

#include <sys/types.h>

#include <functional>
#include <string>

namespace leasehold::bench {

/// A forked process that serves. Killed and waited for at the end. It also dies with its parent.
class Child {
 public:
  /// Forks; the child runs `serve`, whose first line on standard output is "listening HOST:PORT",
  /// and exits. Waits for that line. Call it before any thread is started. Errors: io, stopped (the
  /// child ended without listening; its own message stands on standard error).
  static Result<Child> start(const std::function<Result<void>()>& serve);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;

  const std::string& address() const { return address_; }
  pid_t pid() const { return pid_; }
  /// Blocks until it ends by itself.
  void wait();

 private:
  Child(pid_t pid, std::string address) : pid_(pid), address_(std::move(address)) {}

  pid_t pid_;
  std::string address_;
};

}  // namespace leasehold::bench
