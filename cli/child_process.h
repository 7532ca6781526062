// A command that this program runs, with all that it starts.
#pragma once

#include <leasehold/base/result.h>

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::cli {

/// A process in a group of its own, so that a signal also reaches the processes that it started. If
/// this process dies, for any reason, the whole group is killed. A process that leaves the group,
/// as a daemon does, is not followed.
///
/// If this process has the terminal, the command gets it, and this process takes it back at the
/// end: Ctrl-C goes to the command. In a pipeline, whose other processes may need the terminal, the
/// command gets it when it asks. Make it from the first thread, and where SIGCHLD is not ignored.
class ChildProcess {
 public:
  /// `words`: a program, found by PATH, and its arguments. `environment` is added to that of this
  /// process. Signals that this thread blocks are open in the child. Errors: not_found (no such
  /// program), io (it cannot be executed, or the system has no room).
  static Result<ChildProcess> start(const std::vector<std::string>& words,
                                    const std::map<std::string, std::string>& environment);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  /// end_all().
  ~ChildProcess();

  /// To all of the group.
  void signal(int number) const;
  /// Its exit status as a shell shows it: 128 and the signal, if one ended it. None: it runs. A
  /// command that was stopped (Ctrl-Z) is continued; if it waits for the terminal, it is continued
  /// when this process has the terminal to give. Other processes of the group may still run.
  std::optional<int> ended();
  /// Kills what is left of the group, and waits until nothing is. To be called once.
  void end_all();

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  Result<void> set_guard();
  void go_on();
  bool lend_terminal();

  /// The leader of the group, whose number the group has until this process is reaped. -1: all
  /// ended.
  pid_t pid_;
  /// Kills the group when the other end of its pipe, which is alive_, is closed.
  pid_t guard_ = -1;
  int alive_ = -1;
  std::optional<int> status_;
  /// The signal that stopped it. 0: it was not stopped.
  int stopped_by_ = 0;
  bool has_terminal_ = false;
};

}  // namespace leasehold::cli
