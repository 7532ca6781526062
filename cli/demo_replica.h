// Replicas as child processes, for the demo.
#pragma once

#include <leasehold/base/result.h>

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace leasehold::cli {

/// The path of the running program: from /proc where it is mounted, else from argv[0]. Errors:
/// not_found.
Result<std::string> own_program(const std::string& argv0);

/// Loopback ports on which no process listens now, outside the range from which the system chooses.
/// Errors: unavailable.
Result<std::vector<int>> free_ports(std::size_t count);

/// A folder of its own under TMPDIR or /tmp. Errors: io.
Result<std::string> make_temporary_folder(const std::string& prefix);

/// One child. It dies with this process, however this process ends.
class ReplicaProcess {
 public:
  ReplicaProcess() = default;
  /// Kills the child if it runs.
  ~ReplicaProcess();
  ReplicaProcess(const ReplicaProcess&) = delete;
  ReplicaProcess& operator=(const ReplicaProcess&) = delete;

  /// Starts `words` (the program first). Output goes to the end of the file `log`. Errors: io.
  Result<void> start(const std::vector<std::string>& words, const std::string& log);
  bool running();
  /// Sends a signal; nothing if it does not run.
  void signal(int number) const;
  /// Waits for its end. Returns the exit status, 128 + N after signal N. Errors: timed_out.
  Result<int> wait(std::chrono::milliseconds timeout);
  pid_t pid() const { return pid_; }

 private:
  bool reap(int options);

  pid_t pid_ = 0;
  bool running_ = false;
  int status_ = 0;
};

}  // namespace leasehold::cli
