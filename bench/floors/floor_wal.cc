// floor_wal: what one durable write costs on this disk.
#include <leasehold/bench/raw_log.h>
#include <leasehold/bench/report.h>
#include <leasehold/bench/workload.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <unistd.h>

#include <iostream>

namespace leasehold::bench {
namespace {

struct Options {
  std::string dir = ".";
  std::size_t record_bytes = 256;
  std::uint64_t log_mib = 64;
  unsigned blocks = 24;
  unsigned writes = 100;
  bool json = false;
};

Result<void> write_block(RawLog& log, const Options& options, Histogram& latency) {
  const std::string record(options.record_bytes, 'r');
  for (unsigned i = 0; i < options.writes; ++i) {
    const std::uint64_t began = monotonic_ns();
    auto written = log.write(record);
    if (!written) return written;
    auto synced = log.sync();
    if (!synced) return synced;
    latency.record(monotonic_ns() - began);
  }
  return {};
}

Result<void> measure(const Options& options) {
  const std::string prefix = fmt::format("{}/floor_wal.{}", options.dir, getpid());
  auto preallocated = RawLog::create(prefix + ".preallocated", options.log_mib << 20U,
                                     RawLog::Growth::preallocated);
  if (!preallocated) return preallocated.error();
  unlink((prefix + ".preallocated").c_str());
  auto appending = RawLog::create(prefix + ".appending", 0, RawLog::Growth::appending);
  if (!appending) return appending.error();
  unlink((prefix + ".appending").c_str());

  NamedHistograms rows = {{"preallocated", Histogram()}, {"appending", Histogram()}};
  for (unsigned turn = 0; turn < options.blocks; ++turn) {
    const bool second = second_of_two(turn);
    auto written = write_block(second ? appending.value() : preallocated.value(), options,
                               rows[second ? 1 : 0].second);
    if (!written) return written;
  }
  std::cout << (options.json ? json_of(rows, "ns") + "\n"
                             : fmt::format("pwrite + fdatasync of {} bytes\n{}",
                                           options.record_bytes, table_of(rows, 1000.0, "us")));
  return {};
}

int run(int argc, char** argv) {
  CLI::App app(
      "What one durable write costs on this disk: pwrite + fdatasync into a file of zeroes, and "
      "at the\nend of a growing file; interleaved.");
  Options options;
  app.add_option("--dir", options.dir, "a folder on the disk to measure")->capture_default_str();
  app.add_option("--bytes", options.record_bytes, "bytes of a record")->capture_default_str();
  app.add_option("--log-mib", options.log_mib, "size of the preallocated file")
      ->capture_default_str();
  app.add_option("--blocks", options.blocks, "blocks, in the order A B B A")->capture_default_str();
  app.add_option("--writes", options.writes, "writes of a block")->capture_default_str();
  app.add_flag("--json", options.json, "print JSON instead of a table");
  CLI11_PARSE(app, argc, argv);

  const auto done = measure(options);
  if (!done) std::cerr << "floor_wal: " << done.error().message << "\n";
  return done ? 0 : 1;
}

}  // namespace
}  // namespace leasehold::bench

int main(int argc, char** argv) {
  return leasehold::bench::run(argc, argv);
}
