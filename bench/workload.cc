#include <leasehold/bench/workload.h>

#include <time.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace leasehold::bench {
namespace {

std::string bulk(std::string_view bytes) {
  std::string text = "$" + std::to_string(bytes.size()) + "\r\n";
  text.append(bytes);
  text += "\r\n";
  return text;
}

/// A reply that is one line: an error, or the null of a key that is not there.
bool is_line(std::string_view reply) {
  return reply[0] == '-' || reply[0] == '_' || reply.substr(0, 2) == "$-";
}

/// Where the first `lines` lines end. Zero if they are not complete yet.
std::size_t end_of_lines(std::string_view bytes, std::size_t lines) {
  std::size_t end = 0;
  for (std::size_t line = 0; line < lines; ++line) {
    const std::size_t found = bytes.find("\r\n", end);
    if (found == std::string_view::npos) return 0;
    end = found + 2;
  }
  return end;
}

/// How many elements the array has whose first line is complete.
std::size_t array_size(std::string_view reply) {
  std::size_t size = 0;
  std::from_chars(reply.data() + 1, reply.data() + reply.size(), size);
  return size;
}

std::string renewal_of(const Workload& workload, std::uint64_t lease) {
  std::string request = "*" + std::to_string(1 + workload.ids) + "\r\n$11\r\nLEASE.RENEW\r\n";
  for (std::uint64_t i = 0; i < workload.ids; ++i) {
    request += bulk(std::to_string(lease_id((lease + i) % workload.keys)));
  }
  return request;
}

std::string renewal_reply_of(const Workload& workload) {
  const std::string ttl = ":" + std::to_string(workload.ttl_ms) + "\r\n";
  std::string reply = "*" + std::to_string(workload.ids) + "\r\n";
  for (std::uint64_t i = 0; i < workload.ids; ++i) reply += ttl;
  return reply;
}

}  // namespace

std::string key_name(std::uint64_t key) {
  std::array<char, 32> text{};
  const int length =
      std::snprintf(text.data(), text.size(), "key:%010llu", static_cast<unsigned long long>(key));
  return std::string(text.data(), static_cast<std::size_t>(length));
}

std::string key_value(std::uint64_t key, std::size_t value_bytes) {
  const std::string pattern = key_name(key) + "|";
  std::string value;
  value.reserve(value_bytes + pattern.size());
  while (value.size() < value_bytes) value += pattern;
  value.resize(value_bytes);
  return value;
}

std::uint64_t lease_id(std::uint64_t lease) {
  return 1'000'000'000 + lease;
}

std::string request_of(const Workload& workload, std::uint64_t key) {
  if (workload.operation == Operation::renew) return renewal_of(workload, key);
  if (workload.operation == Operation::get) return "*2\r\n$3\r\nGET\r\n" + bulk(key_name(key));
  return "*3\r\n$3\r\nSET\r\n" + bulk(key_name(key)) + bulk(key_value(key, workload.value_bytes));
}

void put_front(const Recorder::Front& front, const Workload& workload, std::string& request) {
  // Behind the value stands the end of its line.
  std::copy(front.begin(), front.end(),
            request.end() - 2 - static_cast<std::ptrdiff_t>(workload.value_bytes));
}

std::optional<std::string_view> value_in(std::string_view reply) {
  if (reply[0] != '$' || is_line(reply)) return std::nullopt;
  const std::size_t begin = reply.find("\r\n") + 2;
  return reply.substr(begin, reply.size() - begin - 2);
}

void record_reply(Recorder& recorder, Recorder::Place place, Operation operation,
                  std::string_view reply, std::uint64_t now) {
  if (reply[0] == '-') return recorder.failed(place, reply.substr(1));
  if (operation == Operation::set) return recorder.wrote(place, now);
  const auto value = value_in(reply);
  if (value) return recorder.read(place, *value, now);
  recorder.read_nothing(place, now);
}

std::string reply_of(const Workload& workload, std::uint64_t key) {
  if (workload.operation == Operation::set) return "+OK\r\n";
  if (workload.operation == Operation::renew) return renewal_reply_of(workload);
  return bulk(key_value(key, workload.value_bytes));
}

std::size_t request_bytes(const Workload& workload) {
  return request_of(workload, 0).size();
}
std::size_t reply_bytes(const Workload& workload) {
  return reply_of(workload, 0).size();
}

std::string command_of(std::string_view words) {
  std::string body;
  std::size_t count = 0;
  while (!words.empty()) {
    const std::size_t space = words.find(' ');
    body += bulk(words.substr(0, space));
    ++count;
    words.remove_prefix(space == std::string_view::npos ? words.size() : space + 1);
  }
  return "*" + std::to_string(count) + "\r\n" + body;
}

std::string command_of_words(const std::vector<std::string>& words) {
  std::string command = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) command += bulk(word);
  return command;
}

std::size_t reply_length(std::string_view bytes, std::size_t expected_bytes) {
  // Two bytes tell a value from a null.
  if (bytes.size() < 2) return 0;
  if (is_line(bytes)) return end_of_lines(bytes, 1);
  if (bytes[0] != '*') return bytes.size() >= expected_bytes ? expected_bytes : 0;
  // A lease that there is not is answered by a null, which is shorter than a time to live.
  if (end_of_lines(bytes, 1) == 0) return 0;
  return end_of_lines(bytes, 1 + array_size(bytes));
}

Result<std::string> read_reply(const Descriptor& socket, std::size_t expected_bytes,
                               std::string& ahead) {
  std::array<char, 64U << 10U> chunk;
  for (;;) {
    const std::size_t length = reply_length(ahead, expected_bytes);
    if (length > 0) {
      std::string reply = ahead.substr(0, length);
      ahead.erase(0, length);
      return reply;
    }
    auto got = read_some(socket, chunk.data(), chunk.size());
    if (!got) return got.error();
    ahead.append(chunk.data(), got.value());
  }
}

Recorder::Place begin_record(Recorder* recorder, const Workload& workload, std::uint64_t key,
                             std::string& request) {
  if (recorder == nullptr || !recorder->judges(key)) return Recorder::kNowhere;
  // A moment before the request is sent, so that it costs the measured time nothing.
  const std::uint64_t now = monotonic_ns();
  if (workload.operation == Operation::get) return recorder->begin_read(0, key, now);
  const Recorder::Front front = recorder->next_front();
  put_front(front, workload, request);
  return recorder->begin_write(0, key, front, now);
}

Result<LoopResult> closed_loop(const Descriptor& socket, const Workload& workload,
                               std::uint64_t operations, std::uint64_t warmup, Random& random,
                               Recorder* recorder) {
  LoopResult result;
  std::string ahead;
  std::uint64_t started = monotonic_ns();
  for (std::uint64_t i = 0; i < warmup + operations; ++i) {
    const std::uint64_t key = random.below(workload.keys);
    std::string request = request_of(workload, key);
    const std::string expected = reply_of(workload, key);
    const Recorder::Place place = begin_record(recorder, workload, key, request);
    if (i == warmup) started = monotonic_ns();
    const std::uint64_t sent = monotonic_ns();
    auto written = write_all(socket, request);
    if (!written) return written.error();
    auto reply = read_reply(socket, expected.size(), ahead);
    const std::uint64_t received = monotonic_ns();
    if (!reply) return reply.error();
    if (place != Recorder::kNowhere) {
      record_reply(*recorder, place, workload.operation, reply.value(), received);
    }
    if (i < warmup) continue;
    result.latency.record(received - sent);
    // A floor counts bytes and answers with a constant; only the kind of its reply can be checked.
    if (reply.value().size() != expected.size() || reply.value()[0] != expected[0]) {
      if (result.failures++ == 0) result.first_failure = reply.value();
    }
  }
  result.elapsed_ns = monotonic_ns() - started;
  return result;
}

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace leasehold::bench
