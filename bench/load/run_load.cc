#include <leasehold/bench/load/run_load.h>

#include <leasehold/bench/load/engine.h>
#include <leasehold/bench/load/hdr_log.h>
#include <leasehold/bench/load/links.h>
#include <leasehold/bench/load/outcome.h>
#include <leasehold/bench/load/write_keys.h>
#include <leasehold/bench/recorder.h>
#include <leasehold/bench/workload.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <ostream>
#include <utility>

namespace leasehold::bench {
namespace {

/// Of the keys of a history: under way at once, and how long at most.
constexpr std::uint64_t kReadsAtEnd = 16;
constexpr std::uint64_t kReadsAtEndNs = 5'000'000'000;

/// Everything that one run writes.
class Run {
 public:
  Run(const LoadOptions& options, const std::function<bool()>& ended, std::ostream& out,
      std::ostream& news)
      : options_(options), ended_(ended), out_(out), news_(news) {}

  Result<bool> run() {
    if (auto files = open_files(); !files) return files.error();
    auto links = Links::open(options_);
    if (!links) return links.error();
    const auto stands = load_and_measure(*links.value());
    // Even of a run that failed: other clients may have read what it wrote.
    const auto recorded = write_history();
    if (stands && !recorded) return recorded.error();
    return stands;
  }

 private:
  Result<bool> load_and_measure(Links& links) {
    hooks_.ended = ended_;
    hooks_.recorder = recorder_.get();
    Engine engine(links, options_, hooks_);
    if (auto written = write_first(engine); !written) return written.error();
    auto result = measure(engine);
    if (!result) return result.error();
    if (auto read = read_judged(engine); !read) return read.error();
    out_ << table_of_load(result.value(), options_) << std::flush;
    if (auto written = write_files(result.value()); !written) return written.error();
    return worthless_because(result.value(), options_).empty();
  }

  /// Before anything is measured, so that no run is lost to a path that is wrong.
  Result<void> open_files() {
    started_ = std::chrono::system_clock::now();
    if (!options_.json.empty()) {
      json_.open(options_.json);
      if (!json_) return file_error();
    }
    if (options_.recorded()) {
      auto recorder = Recorder::create(options_.history, options_.judged_keys);
      if (!recorder) return recorder.error();
      recorder_ = std::move(recorder).value();
    }
    if (options_.hdr.empty()) return {};
    const std::chrono::duration<double> epoch = started_.time_since_epoch();
    auto log = HdrLog::create(options_.hdr, epoch.count());
    if (!log) return log.error();
    hdr_.emplace(std::move(log).value());
    return {};
  }

  Error file_error() const {
    return Error{ErrorCode::io, fmt::format("--json {}: it cannot be written", options_.json)};
  }

  /// All keys, or those that are judged: a history has to know what a key held at its beginning.
  Result<void> write_first(Engine& engine) {
    const std::uint64_t keys = options_.load ? options_.keys : options_.judged_keys;
    if (keys == 0) return {};
    return write_keys(engine, hooks_, options_, keys, [this, keys](std::uint64_t done) {
      if (options_.quiet) return;
      news_ << fmt::format("writing the keys: {} of {}", done, keys) << std::endl;
    });
  }

  /// Each judged key once: writes alone have an order whatever was lost of them.
  Result<void> read_judged(Engine& engine) {
    if (!options_.recorded()) return {};
    std::uint64_t next = 0;
    Phase phase;
    phase.in_flight = kReadsAtEnd;
    phase.duration_ns = kReadsAtEndNs;
    phase.next = [&next, this]() -> std::optional<LoadOperation> {
      if (next == options_.judged_keys) return std::nullopt;
      return LoadOperation{OperationKind::read, next++, 1};
    };
    hooks_.passed = nullptr;
    const auto read = engine.run(phase);
    return read ? Result<void>{} : Result<void>(read.error());
  }

  Result<void> write_history() {
    if (!recorder_) return {};
    if (auto written = recorder_->write_file(); !written) return written;
    out_ << fmt::format("history: {} operations on {} keys; `leasehold check {}` judges them\n",
                        recorder_->size(), recorder_->keys(), options_.history)
         << std::flush;
    return {};
  }

  Result<PhaseResult> measure(Engine& engine) {
    OperationSource source(options_.mix, options_.chosen_distribution(), options_.keys,
                           options_.seed);
    Phase phase;
    phase.next = [&source] { return std::optional(source.next()); };
    phase.rate = options_.rate;
    phase.in_flight = options_.in_flight;
    phase.warm_up_ns = static_cast<std::uint64_t>(options_.warm_up_s * 1e9);
    phase.duration_ns = static_cast<std::uint64_t>(options_.duration_s * 1e9);
    hooks_.passed = [this](const Measured& second, std::uint64_t number, double length_s,
                           std::size_t in_flight) { pass(second, number, length_s, in_flight); };
    out_ << title_of(options_) << "\n" << std::flush;
    return engine.run(phase);
  }

  void pass(const Measured& second, std::uint64_t number, double length_s, std::size_t in_flight) {
    const SecondSummary summary = summary_of(second, length_s);
    if (summary.operations == 0 && summary.errors == 0 && length_s < 0.5) return;
    seconds_.push_back(summary);
    if (!options_.quiet) news_ << progress_of(summary, number, in_flight) << std::endl;
    if (hdr_) {
      for (std::size_t kind = 0; kind < kKinds; ++kind) {
        hdr_->add(second.latencies[kind], kind_name(static_cast<OperationKind>(kind)), passed_s_,
                  length_s);
      }
    }
    passed_s_ += length_s;
  }

  Result<void> write_files(const PhaseResult& result) {
    if (!options_.json.empty()) {
      const auto seconds = std::chrono::system_clock::to_time_t(started_);
      const std::string started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(seconds));
      json_ << json_of_load(result, seconds_, options_, started) << "\n" << std::flush;
      if (!json_) return file_error();
    }
    return hdr_ ? hdr_->close() : Result<void>{};
  }

  const LoadOptions& options_;
  const std::function<bool()>& ended_;
  std::ostream& out_;
  std::ostream& news_;
  std::chrono::system_clock::time_point started_;
  std::ofstream json_;
  std::optional<HdrLog> hdr_;
  std::unique_ptr<Recorder> recorder_;
  Engine::Hooks hooks_;
  std::vector<SecondSummary> seconds_;
  double passed_s_ = 0;
};

}  // namespace

Result<bool> run_load(const LoadOptions& options, const std::function<bool()>& ended,
                      std::ostream& out, std::ostream& news) {
  return Run(options, ended, out, news).run();
}

}  // namespace leasehold::bench
