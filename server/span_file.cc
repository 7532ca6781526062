#include <leasehold/server/span_file.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace leasehold::server {
namespace {

/// Spans wait so long for others: a write of the file has many.
constexpr std::chrono::milliseconds kPause{200};
/// A smaller difference of the clocks is noise, and a step between a span and its parts worse.
constexpr std::int64_t kTimeStepNs = 1'000'000;

Error span_file_error(const std::string& what, const std::string& path) {
  const int code = errno;
  return {ErrorCode::io, fmt::format("cannot {} the file of spans {}: {}; name another one with "
                                     "--spans, or make room for it",
                                     what, path, std::strerror(code))};
}

}  // namespace

Result<std::unique_ptr<SpanFile>> SpanFile::open(Options options, const lease::Clock& clock) {
  std::unique_ptr<SpanFile> file(new SpanFile(std::move(options), clock));
  if (auto opened = file->open_file(); !opened) return opened.error();
  SpanFile& self = *file;
  self.thread_ = std::thread([&self] { self.run(); });
  return file;
}

SpanFile::SpanFile(Options options, const lease::Clock& clock)
    : Tracer(options.ratio),
      options_(std::move(options)),
      clock_(clock),
      line_begin_(span_line_begin(options_.resource)) {}

SpanFile::~SpanFile() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  if (file_ >= 0) ::close(file_);
}

void SpanFile::ended(replica::SpanRecord span) {
  std::size_t waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    waiting = waiting_.size();
    if (waiting < kWaitingMax) waiting_.push_back(std::move(span));
  }
  if (waiting >= kWaitingMax) crowded_.fetch_add(1, std::memory_order_relaxed);
  // Else its time comes soon enough, and no caller pays for waking it.
  if (waiting == kWaitingMax / 2) wake_.notify_one();
}

SpanCounts SpanFile::counts() const {
  return {written_.load(std::memory_order_relaxed), crowded_.load(std::memory_order_relaxed),
          unwritten_.load(std::memory_order_relaxed)};
}

void SpanFile::run() {
  pthread_setname_np(pthread_self(), "lh-spans");
  std::vector<replica::SpanRecord> spans;
  for (bool ending = false; !ending;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, kPause, [this] { return ending_ || waiting_.size() > kWaitingMax / 2; });
      ending = ending_;
      spans.swap(waiting_);
    }
    if (!spans.empty()) write(spans);
    spans.clear();
  }
}

/// Only a step is followed, so that the spans of one trace fit together.
void SpanFile::look_at_time() {
  const lease::HolderInstant now = clock_.holder_now();
  if (now == lease::HolderInstant::never()) return;
  const std::int64_t unix_ns = options_.unix_now_ns() - now.since_origin().count();
  if (std::abs(unix_ns - unix_ns_) >= kTimeStepNs) unix_ns_ = unix_ns;
}

/// Somebody else has renamed or removed the file: another one begins.
void SpanFile::look_at_name() {
  if (file_ < 0) return;
  struct stat named {};
  struct stat opened {};
  const bool same = ::stat(options_.path.c_str(), &named) == 0 && ::fstat(file_, &opened) == 0 &&
                    named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
  if (!same) ::close(std::exchange(file_, -1));
}

void SpanFile::write(const std::vector<replica::SpanRecord>& spans) {
  look_at_time();
  look_at_name();
  std::string line = line_begin_;
  std::size_t in_line = 0;
  for (const replica::SpanRecord& span : spans) {
    // The clock was disrupted, and this process ends.
    if (span.ended == lease::HolderInstant::never()) continue;
    if (in_line > 0) line += ',';
    append_span(line, span, unix_ns_, options_.resource);
    ++in_line;
    if (line.size() < kLineBytesMax) continue;
    put(line.append(span_line_end()), std::exchange(in_line, 0));
    line = line_begin_;
  }
  if (in_line > 0) put(line.append(span_line_end()), in_line);
}

void SpanFile::put(const std::string& line, std::size_t spans) {
  const Result<void> appended = append(line);
  if (failed_ != !appended) {
    failed_ = !appended;
    options_.notice(failed_ ? appended.error().message + "; until then spans are lost"
                            : "the file of spans can be written again");
  }
  (appended ? written_ : unwritten_).fetch_add(spans, std::memory_order_relaxed);
}

Result<void> SpanFile::append(const std::string& line) {
  if (file_ < 0) {
    if (auto opened = open_file(); !opened) return opened;
  }
  if (size_ > 0 && size_ + line.size() > options_.bytes_max) {
    const std::string older = options_.path + ".1";
    if (std::rename(options_.path.c_str(), older.c_str()) != 0) {
      return span_file_error("rename", options_.path);
    }
    ::close(std::exchange(file_, -1));
    if (auto opened = open_file(); !opened) return opened;
  }
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t wrote = ::write(file_, line.data() + done, line.size() - done);
    if (wrote >= 0) {
      done += static_cast<std::size_t>(wrote);
      continue;
    }
    if (errno == EINTR) continue;
    Error error = span_file_error("write", options_.path);
    // The next one begins a line, too.
    if (::ftruncate(file_, static_cast<off_t>(size_)) != 0) error.message += " (cut short)";
    ::close(std::exchange(file_, -1));
    return error;
  }
  size_ += line.size();
  return {};
}

Result<void> SpanFile::open_file() {
  const int file = ::open(options_.path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return span_file_error("open", options_.path);
  struct stat found {};
  if (::fstat(file, &found) != 0 || !S_ISREG(found.st_mode)) {
    ::close(file);
    errno = EINVAL;
    return span_file_error("use", options_.path);
  }
  file_ = file;
  size_ = static_cast<std::uint64_t>(found.st_size);
  // The process before may have ended in the middle of a line.
  char last = '\n';
  if (size_ > 0 && ::pread(file, &last, 1, found.st_size - 1) == 1 && last != '\n' &&
      ::write(file, "\n", 1) == 1) {
    ++size_;
  }
  return {};
}

}  // namespace leasehold::server
