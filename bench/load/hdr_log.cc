#include <leasehold/bench/load/hdr_log.h>

#include <leasehold/base/assert.h>

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace leasehold::bench {
namespace {

// Of the format: cookies with the sizes of their words, as HdrHistogram writes them.
constexpr std::uint32_t kEncodingCookie = 0x1c849313;
constexpr std::uint32_t kCompressedCookie = 0x1c849314;
constexpr std::uint32_t kDigits = 3;
constexpr std::uint64_t kLowest = 1;
/// Of the column with an interval's maximum: the log is in nanoseconds, the column in milliseconds.
constexpr double kPerMaximumUnit = 1e6;

void put_number(std::string& into, std::uint64_t number, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    into += static_cast<char>(number >> static_cast<unsigned>(shift) & 0xffU);
  }
}

/// ZigZag, seven bits a byte; counts are far below the length at which the format has a ninth byte
/// of another form.
void put_zigzag(std::string& into, std::int64_t number) {
  auto bits = static_cast<std::uint64_t>(number) << 1U;
  if (number < 0) bits = ~bits;
  while (bits >= 0x80) {
    into += static_cast<char>((bits & 0x7fU) | 0x80U);
    bits >>= 7U;
  }
  into += static_cast<char>(bits);
}

/// The counts up to the last one that is not 0; zeroes in a row are their negative number.
std::string counts_of(const Histogram& histogram) {
  std::string counts;
  std::int64_t zeroes = 0;
  for (const std::uint64_t count : histogram.slot_counts()) {
    if (count == 0) {
      ++zeroes;
      continue;
    }
    if (zeroes == 1) put_zigzag(counts, 0);
    if (zeroes > 1) put_zigzag(counts, -zeroes);
    zeroes = 0;
    put_zigzag(counts, static_cast<std::int64_t>(count));
  }
  return counts;
}

std::string compressed(const std::string& bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string into(size, '\0');
  const int done =
      compress(reinterpret_cast<Bytef*>(into.data()), &size,
               reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uLong>(bytes.size()));
  LEASEHOLD_ASSERT(done == Z_OK);  // it has all the room that it can need
  into.resize(size);
  return into;
}

std::string base64(const std::string& bytes) {
  static constexpr char kLetters[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto byte = i < left ? static_cast<unsigned char>(bytes[at + i]) : 0U;
      group = group << 8U | byte;
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= left ? kLetters[group >> (18 - 6 * i) & 0x3fU] : '=';
    }
  }
  return text;
}

Error log_error(const std::string& path) {
  return Error{ErrorCode::io, fmt::format("--hdr {}: {}", path, std::strerror(errno))};
}

}  // namespace

std::string hdr_text(const Histogram& histogram) {
  const std::string counts = counts_of(histogram);
  std::string plain;
  put_number(plain, kEncodingCookie, 4);
  put_number(plain, counts.size(), 4);
  put_number(plain, 0, 4);  // how far the slots are shifted
  put_number(plain, kDigits, 4);
  put_number(plain, kLowest, 8);
  put_number(plain, Histogram::kLargest, 8);
  put_number(plain, 0x3ff0000000000000U, 8);  // a recorded value is 1.0 of what it means
  const std::string body = compressed(plain + counts);
  std::string whole;
  put_number(whole, kCompressedCookie, 4);
  put_number(whole, body.size(), 4);
  return base64(whole + body);
}

std::string hdr_line(const Histogram& histogram, std::string_view tag, double start_s,
                     double length_s) {
  return fmt::format("Tag={},{:.3f},{:.3f},{:.3f},{}\n", tag, start_s, length_s,
                     static_cast<double>(histogram.max()) / kPerMaximumUnit, hdr_text(histogram));
}

Result<HdrLog> HdrLog::create(const std::string& path, double started_epoch_s) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return log_error(path);
  HdrLog log(file, path);
  const std::string head = fmt::format(
      "#[Histogram log format version 1.3]\n"
      "#[leasehold bench: nanoseconds]\n"
      "#[StartTime: {:.3f} (seconds since epoch)]\n"
      "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
      started_epoch_s);
  static_cast<void>(std::fputs(head.c_str(), file));
  return log;
}

void HdrLog::add(const Histogram& histogram, std::string_view tag, double start_s,
                 double length_s) {
  if (histogram.count() == 0) return;
  // What fails is seen at the end.
  static_cast<void>(std::fputs(hdr_line(histogram, tag, start_s, length_s).c_str(), file_.get()));
}

Result<void> HdrLog::close() {
  const bool failed = std::ferror(file_.get()) != 0;
  if (std::fclose(file_.release()) != 0 || failed) return log_error(path_);
  return {};
}

}  // namespace leasehold::bench
