// A server that is measured, as a child of this process.
#pragma once

#include <leasehold/base/result.h>

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::bench {

/// The path of a program in PATH; empty: there is none.
std::string program_in_path(const std::string& name);

/// Loopback ports on which no process listens now, outside the range from which the system takes
/// those of connections. Errors: unavailable.
Result<std::vector<int>> unused_ports(std::size_t count);

/// It dies with this process, however this process ends, and Ctrl-C does not reach it. To be
/// started by the first thread. Not copied.
class ServerProcess {
 public:
  ServerProcess() = default;
  /// Kills what still runs.
  ~ServerProcess();
  ServerProcess(ServerProcess&& other) noexcept;
  ServerProcess& operator=(ServerProcess&&) = delete;

  /// Starts `words` (the program first); what it says goes to the end of the file `log`. Errors:
  /// io.
  static Result<ServerProcess> start(const std::vector<std::string>& words, const std::string& log);

  bool running();
  /// Asks it to end.
  void end() const;
  /// Waits for its end, and kills it when it takes longer.
  void wait(std::chrono::milliseconds timeout);
  /// Processor time of it and of the processes that it started, in nanoseconds.
  std::uint64_t cpu_ns() const;

  const std::string& log() const { return log_; }

 private:
  ServerProcess(pid_t pid, std::string log) : pid_(pid), log_(std::move(log)) {}
  bool reap(int options);

  pid_t pid_ = -1;  ///< -1: it has ended
  std::string log_;
};

/// The last lines of a log, for people.
std::string end_of_log(const std::string& path);

}  // namespace leasehold::bench
