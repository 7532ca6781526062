// The load itself: operations that are due, their latencies, and their errors by kind.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/bench/histogram.h>
#include <leasehold/bench/load/links.h>
#include <leasehold/bench/load/mix.h>
#include <leasehold/bench/load/options.h>
#include <leasehold/bench/recorder.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::bench {

/// A histogram for each kind of operation, in nanoseconds.
using Latencies = std::array<Histogram, kKinds>;

/// What one second, or all of a run, showed.
struct Measured {
  Latencies latencies;  ///< of what was answered well
  Histogram late;       ///< open loop: how long after it was due an operation was sent
  std::map<std::string, std::uint64_t> errors;  ///< by kind

  std::uint64_t operations() const;
  std::uint64_t error_count() const;
  /// Of all kinds together.
  Histogram all() const;
  void merge(const Measured& other);
  void clear();
};

struct Phase {
  /// None: the operations are over.
  std::function<std::optional<LoadOperation>()> next;
  std::uint64_t rate = 0;         ///< due a second; 0: one for each that is answered
  std::uint64_t in_flight = 1;    ///< at most
  std::uint64_t warm_up_ns = 0;   ///< what was due before it does not count
  std::uint64_t duration_ns = 0;  ///< after that; 0: until the operations are over
};

struct PhaseResult {
  Measured total;
  std::uint64_t redirections = 0;  ///< -MOVED that was followed
  std::uint64_t elapsed_ns = 0;    ///< of what counts
  std::uint64_t cpu_ns = 0;        ///< of the client's own thread meanwhile
  bool ended_early = false;        ///< by the user
};

/// One thread.
class Engine final : private Links::Listener {
 public:
  struct Hooks {
    /// Asked some times a second: whether the user wants an end.
    std::function<bool()> ended;
    /// About once a second, of what counts. `second` is the number of the one that is over, from 0
    /// on; `length_s` is how long it really was.
    std::function<void(const Measured& second, std::uint64_t number, double length_s,
                       std::size_t in_flight)>
        passed;
    /// Each operation that ended with an error.
    std::function<void(const LoadOperation& operation)> failed;
    /// Takes the reads and writes of single keys that it judges. Null: nothing is recorded.
    Recorder* recorder = nullptr;
  };

  /// All of these outlive it.
  Engine(Links& links, const LoadOptions& options, Hooks& hooks);

  /// Errors: io.
  Result<PhaseResult> run(const Phase& phase);

 private:
  void answered(std::size_t link, const Ticket& ticket, const ReplyView& reply,
                std::uint64_t now) override;
  void lost(const Ticket& ticket, const std::string& why) override;
  void not_opened(const Error& error) override;

  void begin(const Phase& phase);
  Result<void> turn(std::uint64_t now);
  void issue_due(std::uint64_t now);
  void issue_free(std::uint64_t now);
  bool issue(std::uint64_t due, std::size_t hint);
  void request(std::size_t link, Ticket ticket);
  std::string_view value_with(std::string_view front);
  std::string_view next_value();
  void record_answer(const Ticket& ticket, const ReplyView& reply, std::uint64_t now);
  void send_redirected(std::uint64_t now);
  void end_operation(std::size_t link);
  void fail(const Ticket& ticket, const std::string& kind);
  void note_error(const std::string& kind);
  void pass_second(std::uint64_t now, bool last);

  Links& links_;
  const LoadOptions& options_;
  Hooks& hooks_;
  const std::string filler_;  ///< of values

  const Phase* phase_ = nullptr;
  std::uint64_t began_ = 0;
  std::uint64_t counted_from_ = 0;
  std::uint64_t ends_ = 0;
  std::uint64_t next_due_ = 0;
  double interval_ns_ = 0;
  std::uint64_t scheduled_ = 0;     ///< how many were due so far
  std::vector<std::size_t> free_;   ///< closed loop: operations that may begin, by connection
  std::vector<Ticket> redirected_;  ///< until there is a connection to their server
  bool source_over_ = false;
  bool ended_ = false;
  std::uint64_t writes_ = 0;  ///< each value differs by its number
  std::uint64_t cpu_before_ = 0;
  std::uint64_t second_began_ = 0;
  std::uint64_t seconds_ = 0;
  Measured second_;
  PhaseResult result_;
  std::string value_;  ///< of one request
};

}  // namespace leasehold::bench
