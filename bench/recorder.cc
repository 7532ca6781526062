#include <leasehold/bench/recorder.h>

#include <leasehold/bench/workload.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

namespace leasehold::bench {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
/// Written at once.
constexpr std::size_t kTextBytes = 1U << 20U;

/// Far from those of every other process, so that counting up from there meets none of them.
std::uint64_t random_origin() {
  std::random_device device;
  const std::uint64_t high = device();
  return (high << 32U) | device();
}

/// As a JSON string. A byte is the character of its number, so different bytes stay different.
void append_quoted(std::string_view bytes, std::string& text) {
  text += '"';
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20U && byte < 0x7fU && c != '"' && c != '\\') {
      text += c;
      continue;
    }
    text += "\\u00";
    text += kHexDigits[byte >> 4U];
    text += kHexDigits[byte & 15U];
  }
  text += '"';
}

/// Whether the server promises that it has not executed the command, and never will. Any other
/// error of a write is taken as unknown, which accuses nobody wrongly.
bool surely_not_executed(std::string_view error) {
  const std::string_view word = error.substr(0, error.find(' '));
  return word == "NOLEADER" || word == "TRYAGAIN" || word == "MOVED" || word == "CLUSTERDOWN";
}

}  // namespace

Recorder::Recorder(std::string path, std::uint64_t keys)
    : path_(std::move(path)), keys_(keys), next_(random_origin()) {}

Result<std::unique_ptr<Recorder>> Recorder::create(const std::string& path, std::uint64_t keys) {
  std::unique_ptr<Recorder> recorder(new Recorder(path, keys));
  recorder->file_.open(path, std::ios::binary | std::ios::trunc);
  if (!recorder->file_) {
    return Error{ErrorCode::io, "--history " + path + ": it cannot be written"};
  }
  return recorder;
}

Recorder::Front Recorder::next_front() {
  Front front;
  std::uint64_t number = next_++;
  for (std::size_t i = front.size(); i > 0; --i) {
    front[i - 1] = kHexDigits[number & 15U];
    number >>= 4U;
  }
  return front;
}

Recorder::Place Recorder::add(const Entry& entry) {
  if (entries_.size() == kOperationsMax) {
    full_ = true;
    return kNowhere;
  }
  entries_.push_back(entry);
  return static_cast<Place>(entries_.size() - 1);
}

Recorder::Place Recorder::begin_read(std::uint64_t client, std::uint64_t key, std::uint64_t now) {
  Entry entry;
  entry.began = now;
  entry.key = static_cast<std::uint32_t>(key);
  entry.client = static_cast<std::uint32_t>(client);
  return add(entry);
}

Recorder::Place Recorder::begin_write(std::uint64_t client, std::uint64_t key, const Front& front,
                                      std::uint64_t now) {
  Entry entry;
  entry.began = now;
  entry.value = front;
  entry.value_bytes = kFrontBytes;
  entry.key = static_cast<std::uint32_t>(key);
  entry.client = static_cast<std::uint32_t>(client);
  entry.writes = true;
  return add(entry);
}

void Recorder::read(Place place, std::string_view value, std::uint64_t now) {
  if (place == kNowhere) return;
  Entry& entry = entries_[place];
  const std::size_t bytes = std::min(value.size(), kFrontBytes);
  std::memcpy(entry.value.data(), value.data(), bytes);
  entry.value_bytes = static_cast<std::uint8_t>(bytes);
  entry.ended = now;
  entry.state = State::answered;
}

void Recorder::read_nothing(Place place, std::uint64_t now) {
  if (place == kNowhere) return;
  Entry& entry = entries_[place];
  entry.nothing = true;
  entry.ended = now;
  entry.state = State::answered;
}

void Recorder::wrote(Place place, std::uint64_t now) {
  if (place == kNowhere) return;
  entries_[place].ended = now;
  entries_[place].state = State::answered;
}

void Recorder::failed(Place place, std::string_view error) {
  if (place == kNowhere || !surely_not_executed(error)) return;
  entries_[place].state = State::not_executed;
}

void Recorder::append_line(const Entry& entry, std::string& text) {
  text += "{\"client\":" + std::to_string(entry.client) + ",\"op\":\"";
  text += entry.writes ? "put" : "get";
  text += "\",\"key\":\"" + key_name(entry.key) + "\",\"value\":";
  if (entry.nothing) {
    text += "null";
  } else {
    append_quoted({entry.value.data(), entry.value_bytes}, text);
  }
  text += ",\"start\":" + std::to_string(entry.began) + ",\"end\":";
  text += entry.state == State::answered ? std::to_string(entry.ended) : "null";
  text += "}\n";
}

Result<void> Recorder::write_file() {
  if (full_) {
    return Error{ErrorCode::invalid_argument,
                 "--history " + path_ + ": more than " + std::to_string(kOperationsMax) +
                     " operations on the judged keys: choose fewer --judged-keys or a shorter run"};
  }
  std::string text;
  for (const Entry& entry : entries_) {
    const bool says_nothing = !entry.writes && entry.state == State::under_way;
    if (says_nothing || entry.state == State::not_executed) continue;
    append_line(entry, text);
    if (text.size() < kTextBytes) continue;
    file_ << text;
    text.clear();
  }
  file_ << text << std::flush;
  if (file_) return {};
  return Error{ErrorCode::io, "--history " + path_ + ": it could not be written"};
}

}  // namespace leasehold::bench
