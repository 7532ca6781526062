// A command that this program runs, with all that it starts.
#pragma once

#include <leasehold/base/result.h>

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::server {

/// A process in a group of its own, so that a signal reaches what it has started, too. If this
/// process dies, it is killed. Where this process has the terminal, the command gets it, and this
/// process has it back at the end: Ctrl-C is the command's.
class ChildProcess {
 public:
  /// `words`: a program, found by PATH, and its arguments. `environment` is added to that of this
  /// process. Signals that this thread blocks are open in the child. Errors: not_found (no such
  /// program), io (it cannot be executed, or the system has no room).
  static Result<ChildProcess> start(const std::vector<std::string>& words,
                                    const std::map<std::string, std::string>& environment);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  /// Kills it.
  ~ChildProcess();

  /// To all of the group.
  void signal(int number) const;
  /// Its exit status as a shell shows it: 128 and the signal, if one ended it. None: it runs. A
  /// command that was stopped (Ctrl-Z) is continued.
  std::optional<int> ended();

 private:
  explicit ChildProcess(pid_t pid);

  pid_t pid_;
  std::optional<int> status_;
  bool has_terminal_ = false;
};

}  // namespace leasehold::server
