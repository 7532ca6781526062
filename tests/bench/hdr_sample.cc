// hdr_sample: writes a log of HdrHistogram, and each of its histograms as JSON, a line each, to the
// two files that it is given. hdr_log_test.py reads both.
#include <leasehold/base/random.h>
#include <leasehold/bench/histogram.h>
#include <leasehold/bench/load/hdr_log.h>

#include <fstream>
#include <iostream>
#include <string>

namespace leasehold::bench {
namespace {

/// Shapes that the encoding has to tell apart: runs of empty slots, single ones, large counts.
Histogram sample(int shape, Random& random) {
  Histogram histogram;
  if (shape == 0) histogram.record(0);
  if (shape == 1) {
    for (const std::uint64_t value : {1U, 3U, 2047U, 2048U, 2050U, 4096U}) histogram.record(value);
  }
  if (shape == 2) {
    for (int i = 0; i < 300'000; ++i) histogram.record(100);
  }
  if (shape == 3) histogram.record(Histogram::kLargest);
  if (shape > 3) {
    for (int i = 0; i < 5000; ++i) histogram.record(random.next() >> (22 + random.below(40)));
  }
  return histogram;
}

int write(const char* log_path, const char* json_path) {
  auto log = HdrLog::create(log_path, 1'700'000'000.25);
  if (!log) {
    std::cerr << log.error().message << "\n";
    return 1;
  }
  std::ofstream json(json_path);
  Random random(1);
  for (int shape = 0; shape < 20; ++shape) {
    const Histogram histogram = sample(shape, random);
    log.value().add(histogram, shape % 2 == 0 ? "read" : "update", shape, 1.0);
    json << histogram.to_json() << "\n";
  }
  log.value().add(Histogram(), "empty", 20, 1.0);
  return log.value().close() && json.flush() ? 0 : 1;
}

}  // namespace
}  // namespace leasehold::bench

int main(int count, char** arguments) {
  return count == 3 ? leasehold::bench::write(arguments[1], arguments[2]) : 2;
}
