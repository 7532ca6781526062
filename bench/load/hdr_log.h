// The interval log of HdrHistogram (version 1.3, V2 compressed encoding), which its own tools and
// plots read: a line for each interval and kind of operation.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/bench/histogram.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace leasehold::bench {

/// The V2 encoding, compressed by zlib, in base64. Our histogram has the very slots of an
/// HdrHistogram with three digits, so nothing is rounded.
std::string hdr_text(const Histogram& histogram);

/// One line of the log: `start_s` counts from the beginning of the log.
std::string hdr_line(const Histogram& histogram, std::string_view tag, double start_s,
                     double length_s);

/// A log that grows while the load runs. One thread.
class HdrLog {
 public:
  /// Errors: io.
  static Result<HdrLog> create(const std::string& path, double started_epoch_s);

  /// Empty histograms have no line.
  void add(const Histogram& histogram, std::string_view tag, double start_s, double length_s);
  /// Errors: io, of anything that was added.
  Result<void> close();

 private:
  struct Closer {
    void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
  };
  HdrLog(std::FILE* file, std::string path) : file_(file), path_(std::move(path)) {}

  std::unique_ptr<std::FILE, Closer> file_;
  std::string path_;
};

}  // namespace leasehold::bench
