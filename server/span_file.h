// SpanFile: writes the spans of this node to a file, in OpenTelemetry's JSON lines.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/lease/clock.h>
#include <leasehold/node/tracer.h>
#include <leasehold/server/front/command_trace.h>
#include <leasehold/server/span_json.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::server {

/// Calls give it their spans, a thread of its own ("lh-spans") writes them. Nobody waits for the
/// file: spans that come while kWaitingMax wait are lost, and so are those that the file does not
/// take; both are counted. There are only whole lines in the file, also behind a failure.
///
/// A span has no data of clients: the names of commands, and numbers.
class SpanFile final : public node::Tracer {
 public:
  static constexpr std::size_t kWaitingMax = 16'384;
  /// Of a line: the Collector takes a MiB by default.
  static constexpr std::size_t kLineBytesMax = std::size_t{256} << 10U;

  struct Options {
    std::string path;
    double ratio = 0.01;
    /// A file that would become longer is renamed to "path.1", in place of the one before.
    std::uint64_t bytes_max = std::uint64_t{64} << 20U;
    SpanResource resource;
    std::function<std::int64_t()> unix_now_ns;  ///< the time of people, since 1970
    /// Sentences for the operator's log, on its thread: the file cannot be written, or again can.
    std::function<void(const std::string&)> notice;
  };

  /// Goes on with a file that is there. `clock` outlives it. Errors: io: it cannot be opened.
  static Result<std::unique_ptr<SpanFile>> open(Options options, const lease::Clock& clock);
  /// Writes what waits. Behind the end of all that it traces.
  ~SpanFile() override;
  SpanFile(const SpanFile&) = delete;
  SpanFile& operator=(const SpanFile&) = delete;

  void ended(replica::SpanRecord span) override;
  SpanCounts counts() const;

 private:
  SpanFile(Options options, const lease::Clock& clock);
  Result<void> open_file();
  void run();
  void write(const std::vector<replica::SpanRecord>& spans);
  void put(const std::string& line, std::size_t spans);
  Result<void> append(const std::string& line);
  void look_at_time();
  void look_at_name();

  const Options options_;
  const lease::Clock& clock_;
  const std::string line_begin_;

  // The thread alone.
  int file_ = -1;  ///< below 0: it has to be opened
  std::uint64_t size_ = 0;
  std::int64_t unix_ns_ = 0;  ///< at zero of the clock
  bool failed_ = false;       ///< and that was said

  std::atomic<std::uint64_t> written_{0}, crowded_{0}, unwritten_{0};

  std::mutex mutex_;
  std::condition_variable wake_;
  // Under mutex_.
  std::vector<replica::SpanRecord> waiting_;
  bool ending_ = false;

  std::thread thread_;
};

}  // namespace leasehold::server
