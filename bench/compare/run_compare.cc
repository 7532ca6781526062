#include <leasehold/bench/compare/circumstances.h>
#include <leasehold/bench/compare/measure.h>
#include <leasehold/bench/compare/page.h>
#include <leasehold/bench/compare/run_compare.h>
#include <leasehold/bench/compare/systems.h>
#include <leasehold/bench/workload.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <set>
#include <utility>

namespace leasehold::bench {
namespace {

/// With less room than this the run would end in the middle.
constexpr std::uint64_t kFreeBytesMin = std::uint64_t{1} << 30U;

/// Removes it and all in it.
class WorkFolder {
 public:
  static Result<WorkFolder> make(const std::string& wanted) {
    const char* const set = std::getenv("TMPDIR");
    const std::string usual = set == nullptr || *set == '\0' ? "/tmp" : set;
    std::string path = fmt::format("{}/leasehold-compare-XXXXXX", wanted.empty() ? usual : wanted);
    if (mkdtemp(path.data()) == nullptr) {
      return Error{ErrorCode::io,
                   fmt::format("no folder can be made in {}: {}. Name another by --dir",
                               wanted.empty() ? usual : wanted, std::strerror(errno))};
    }
    WorkFolder folder(path);
    std::error_code failed;
    const auto room = std::filesystem::space(path, failed);
    if (!failed && room.available < kFreeBytesMin) {
      return Error{
          ErrorCode::io,
          fmt::format("{} MiB are free in {}, and {} are needed: name another folder by --dir",
                      room.available >> 20U, wanted.empty() ? usual : wanted,
                      kFreeBytesMin >> 20U)};
    }
    return folder;
  }
  WorkFolder(WorkFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit WorkFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

class ComparisonRun {
 public:
  ComparisonRun(const CompareOptions& options, const std::function<bool()>& ended,
                std::ostream& out, std::ostream& news)
      : options_(options), ended_(ended), out_(out), news_(news) {}

  Result<bool> run() {
    // Before anything is measured, so that no run is lost to a path that is wrong.
    if (auto opened = open_file(options_.json, "--json", json_); !opened) return opened.error();
    if (auto opened = open_file(options_.html, "--html", html_); !opened) return opened.error();
    auto folder = WorkFolder::make(options_.folder);
    if (!folder) return folder.error();
    // The servers end before their folder goes.
    const Stopper stopper{*this};
    circumstances_ = look_around(folder.value().path());
    if (auto started = start_systems(folder.value().path()); !started) return started.error();
    const ProcessorTicks before = processor_ticks();
    const std::uint64_t began = monotonic_ns();
    Measurer measurer(options_, plan_, systems_, ended_, news_);
    const auto measured = measurer.run();
    circumstances_.seconds = static_cast<double>(monotonic_ns() - began) / 1e9;
    circumstances_.stolen = stolen_share(before, processor_ticks());
    stop_systems();
    if (!measured) return measured.error();
    circumstances_.ended_early = !measured.value();
    if (measurer.sweeps() < 2) {
      return Error{ErrorCode::stopped,
                   "ended before two sweeps were complete: nothing is compared"};
    }
    return report(measurer);
  }

 private:
  struct Stopper {
    ComparisonRun& run;
    ~Stopper() { run.stop_systems(); }
  };

  static Result<void> open_file(const std::string& path, const char* flag, std::ofstream& file) {
    if (path.empty()) return {};
    file.open(path);
    if (file) return {};
    return Error{ErrorCode::io, fmt::format("{} {}: it cannot be written", flag, path)};
  }

  Result<void> start_systems(const std::string& folder) {
    std::set<System> there;
    for (const System system :
         {System::leasehold, System::etcd, System::redis, System::redis_durable}) {
      if (!program_of(system, options_).empty()) {
        there.insert(system);
        continue;
      }
      circumstances_.left_out.push_back(fmt::format("{} is left out: not installed (Debian: {})",
                                                    description_of(system), package_of(system)));
      news_ << circumstances_.left_out.back() << std::endl;
    }
    plan_ = plan_of(options_, there);
    if (!options_.quiet) {
      news_ << fmt::format("about {} for {} sweeps; Ctrl-C ends it with the sweeps so far\n",
                           time_text(seconds_of(plan_, options_)), options_.sweeps);
    }
    for (const System system : there) {
      auto started = RunningSystem::start(system, options_, folder);
      if (!started) return started.error();
      systems_.emplace(system, std::move(started).value());
    }
    circumstances_.versions.push_back("Leasehold " + options_.version);
    for (auto& [system, running] : systems_) {
      if (auto ready = running.wait_ready(ended_); !ready) return ready;
      const auto state = running.state();
      if (!options_.quiet) news_ << description_of(system) << ": started" << std::endl;
      std::vector<std::string>& versions = circumstances_.versions;
      const bool known =
          !state || state.value().version.empty() ||
          std::find(versions.begin(), versions.end(), state.value().version) != versions.end();
      if (!known) versions.push_back(state.value().version);
    }
    return {};
  }

  void stop_systems() {
    for (auto& [system, running] : systems_) running.end();
    for (auto& [system, running] : systems_) running.stop();
    systems_.clear();
  }

  Result<bool> report(const Measurer& measurer) {
    CompareOptions done = options_;
    done.sweeps = measurer.sweeps();
    const Findings findings = findings_of(plan_, measurer.blocks(), done.sweeps);
    out_ << table_of_comparison(done, circumstances_, plan_, findings) << std::flush;
    if (json_.is_open()) {
      json_ << json_of_comparison(done, circumstances_, plan_, measurer.blocks(), findings) << "\n"
            << std::flush;
      if (!json_) return Error{ErrorCode::io, "--json: the file could not be written"};
    }
    if (html_.is_open()) {
      html_ << page_of_comparison(done, circumstances_, plan_, findings) << std::flush;
      if (!html_) return Error{ErrorCode::io, "--html: the file could not be written"};
    }
    return findings.all_stand();
  }

  const CompareOptions& options_;
  const std::function<bool()>& ended_;
  std::ostream& out_;
  std::ostream& news_;
  std::ofstream json_;
  std::ofstream html_;
  Circumstances circumstances_;
  Plan plan_;
  Systems systems_;
};

}  // namespace

Result<bool> run_comparison(const CompareOptions& options, const std::function<bool()>& ended,
                            std::ostream& out, std::ostream& news) {
  return ComparisonRun(options, ended, out, news).run();
}

}  // namespace leasehold::bench
