// floor_null_replicate: what any replicated durable write must pay; see null_replicate.h.
#include <leasehold/bench/floors/child.h>
#include <leasehold/bench/floors/null_replicate.h>
#include <leasehold/bench/report.h>
#include <leasehold/bench/workload.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <unistd.h>

#include <iostream>

namespace leasehold::bench {
namespace {

struct Run {
  NullReplicateOptions leader;
  Workload workload{Operation::set, 1000, 256};
  std::string dir = ".";
  std::uint64_t log_mib = 64;
  bool appending = false;
  std::uint64_t operations = 2000;
  bool json = false;
};

NullReplicateOptions member_options(const Run& run, const std::string& name) {
  NullReplicateOptions options = run.leader;
  options.log_path = fmt::format("{}/floor_null.{}.{}", run.dir, getpid(), name);
  options.log_bytes = run.log_mib << 20U;
  if (run.appending) options.growth = RawLog::Growth::appending;
  return options;
}

Result<void> measure(const NullReplicateOptions& options, const Run& run,
                     const std::vector<std::string>& followers) {
  auto leader =
      Child::start([&options, &followers] { return serve_null_leader(options, followers); });
  if (!leader) return leader.error();
  auto socket = connect_tcp(leader.value().address());
  if (!socket) return socket.error();
  Random random(1);
  auto result =
      closed_loop(socket.value(), run.workload, run.operations, run.operations / 10, random);
  if (!result) return result.error();
  const NamedHistograms rows = {{"null-replicate", result.value().latency}};
  std::cout << (run.json ? json_of(rows, "ns") + "\n"
                         : "closed loop, one connection\n" + table_of(rows, 1000.0, "us"));
  return {};
}

/// The files of a run: removed at its end, or when a serving leader fails.
struct LogFiles {
  std::vector<std::string> paths;
  ~LogFiles() {
    for (const std::string& path : paths) unlink(path.c_str());
  }
};

Result<void> start(const Run& run, bool serve) {
  LogFiles files;
  std::vector<Child> children;
  std::vector<std::string> followers;
  for (const char* name : {"follower1", "follower2"}) {
    NullReplicateOptions options = member_options(run, name);
    options.listen = "127.0.0.1:0";
    files.paths.push_back(options.log_path);
    auto child = Child::start([&options] { return serve_null_follower(options); });
    if (!child) return child.error();
    followers.push_back(child.value().address());
    children.push_back(std::move(child).value());
  }
  const NullReplicateOptions options = member_options(run, "leader");
  files.paths.push_back(options.log_path);
  return serve ? serve_null_leader(options, followers) : measure(options, run, followers);
}

int run_program(int argc, char** argv) {
  CLI::App app(
      "The floor under a replicated write: three processes without any consensus; a record is "
      "answered\nwhen it is durable at the leader and at one of two followers. Alone it measures "
      "itself over\nloopback; `serve` only serves.");
  Run run;
  app.add_option("--dir", run.dir, "a folder on the disk to measure")->capture_default_str();
  app.add_option("--log-mib", run.log_mib, "size of each preallocated log")->capture_default_str();
  app.add_flag("--appending", run.appending, "let the logs grow instead of preallocating them");
  app.add_option("--value-bytes", run.workload.value_bytes, "bytes of the value")
      ->capture_default_str();
  app.add_option("--operations", run.operations, "requests to measure")->capture_default_str();
  app.add_flag("--json", run.json, "print JSON instead of a table");
  CLI::App* serve = app.add_subcommand("serve", "serve until killed; prints `listening ADDRESS`");
  serve->add_option("--listen", run.leader.listen, "host:port")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const auto done = start(run, serve->parsed());
  if (!done) std::cerr << "floor_null_replicate: " << done.error().message << "\n";
  return done ? 0 : 1;
}

}  // namespace
}  // namespace leasehold::bench

int main(int argc, char** argv) {
  return leasehold::bench::run_program(argc, argv);
}
