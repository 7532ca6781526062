#include <leasehold/cli/access.h>
#include <leasehold/cli/trace_recording.h>
#include <leasehold/server/commands/report.h>
#include <leasehold/story/trace_file.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace leasehold::cli {
namespace {

using client::RespClient;
using client::RespValue;
using std::chrono::milliseconds;
using story::Duration;
using story::TracePart;

/// For one answer.
constexpr RespClient::Timeout kPatience{2000};
/// Between two questions. What a node saw since the last one is lost with it.
constexpr milliseconds kTakePause{50};
constexpr milliseconds kConnectPause{200};
/// What a question may find to do at once.
constexpr int kTakesMax = 200;

/// An answer that is a map: its numbers and its texts, by name.
struct Answer {
  std::map<std::string, std::int64_t> numbers;
  std::map<std::string, std::string> texts;

  std::int64_t number(const std::string& name) const {
    const auto found = numbers.find(name);
    return found == numbers.end() ? -1 : found->second;
  }
  std::string text(const std::string& name) const {
    const auto found = texts.find(name);
    return found == texts.end() ? std::string() : found->second;
  }
};

std::optional<Answer> answer_of(const RespValue& reply) {
  if (reply.kind != RespValue::Kind::array || reply.items.size() % 2 != 0) return std::nullopt;
  Answer answer;
  for (std::size_t i = 0; i < reply.items.size(); i += 2) {
    const RespValue& value = reply.items[i + 1];
    if (value.kind == RespValue::Kind::integer) {
      answer.numbers[reply.items[i].text] = value.integer;
    } else {
      answer.texts[reply.items[i].text] = value.text;
    }
  }
  return answer;
}

Duration now_here() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

/// Of a reading that a server names.
bool is_instant(std::int64_t ns) {
  return ns >= 0 && ns < 1'000'000'000'000'000'000;
}

constexpr const char* kReads[] = {"lease", "lease_waited", "quorum", "leader",
                                  "log",   "stale",        "refused"};

std::string reads_between(const Answer& begin, const Answer& end) {
  std::string text;
  for (const char* name : kReads) {
    const std::string key = std::string("reads_") + name;
    const std::int64_t count = end.number(key) - begin.number(key);
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  }
  return text;
}

/// What a refusal means for somebody who wants a trace.
std::string refusal_text(const std::string& text) {
  if (text.rfind("NOPERM", 0) == 0) {
    return text + " (the user needs +leasehold|trace)";
  }
  if (text.rfind("ERR unknown subcommand", 0) == 0) {
    return "runs a version of Leasehold that records no traces (" + text + ")";
  }
  if (text.rfind("ERR unknown command", 0) == 0) return "is no node of Leasehold (" + text + ")";
  return text;
}

const char* const kOtherForm = "an answer of another form than this build reads";

}  // namespace

TraceRecording::TraceRecording(const std::vector<std::string>& servers, milliseconds span)
    : span_(span), deadline_(Clock::now() + span) {
  running_ = servers.size();
  for (const std::string& server : servers) {
    all_.push_back(std::make_unique<Conversation>());
    all_.back()->server = server;
  }
  for (const auto& one : all_) {
    one->thread = std::thread([this, &own = *one] {
      run(own);
      --running_;
    });
  }
}

TraceRecording::~TraceRecording() {
  stop();
  for (const auto& one : all_) {
    if (one->thread.joinable()) one->thread.join();
  }
}

void TraceRecording::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  wakes_.notify_all();
}

bool TraceRecording::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

/// False: everything is to end.
bool TraceRecording::wait(milliseconds span) {
  std::unique_lock lock(mutex_);
  return !wakes_.wait_for(lock, span, [this] { return stopped_; });
}

story::ClusterTrace TraceRecording::finish() {
  story::ClusterTrace trace;
  trace.program = server::kVersion;
  trace.group = std::max<std::uint64_t>(access().group(), 1);
  trace.span = span_;
  for (const auto& one : all_) {
    if (one->thread.joinable()) one->thread.join();
    // Also of a node that has died, and has not come back.
    if (one->parts.empty()) trace.missing.push_back({one->server, one->trouble});
    for (TracePart& part : one->parts) trace.parts.push_back(std::move(part));
    one->parts.clear();
  }
  return trace;
}

void TraceRecording::run(Conversation& own) {
  while (!stopped() && Clock::now() < deadline_) {
    auto client = RespClient::connect(own.server, kPatience, access());
    if (client) {
      if (!record(own, client.value())) return;
    } else {
      own.trouble = client.error().message;
      // It would be refused again.
      if (client.error().code == ErrorCode::invalid_argument) return;
    }
    wait(kConnectPause);
  }
  if (own.trouble.empty()) own.trouble = "no answer in time";
}

/// False: it has all that this server has, or will be refused again.
bool TraceRecording::record(Conversation& own, RespClient& client) {
  const auto left = std::chrono::ceil<milliseconds>(deadline_ - Clock::now());
  const Duration asked = now_here();
  const auto reply = client.call(
      {"LEASEHOLD", "TRACE", "START", fmt::format("{}ms", std::max<long>(left.count(), 1))},
      kPatience);
  const Duration answered = now_here();
  if (!reply) {
    own.trouble = reply.error().message;
    return true;
  }
  const std::optional<Answer> begun = answer_of(reply.value());
  if (!begun) {
    const bool refused = reply.value().kind == RespValue::Kind::error;
    own.trouble = refused ? refusal_text(reply.value().text) : kOtherForm;
    return reply.value().not_executed();
  }
  TracePart part;
  part.server = own.server;
  part.node = raft::NodeId(static_cast<std::uint64_t>(begun->number("node")));
  part.process = static_cast<std::uint64_t>(begun->number("process"));
  part.machine = begun->text("machine");
  part.version = begun->text("version");
  if (!is_instant(begun->number("holder_ns")) || begun->number("node") < 1 ||
      begun->number("process") < 0 || !is_instant(begun->number("id"))) {
    own.trouble = kOtherForm;
    return false;
  }
  part.begin = part.end = Duration(begun->number("holder_ns"));
  part.probes.push_back({asked, part.begin, answered});
  own.trouble.clear();
  ++recording_;
  const bool done = take(part, client, std::to_string(begun->number("id")));
  --recording_;
  if (part.ended.empty()) part.ended = "lost";
  own.parts.push_back(std::move(part));
  return !done && own.parts.size() < story::kTracePartsMax / std::max<std::size_t>(all_.size(), 1);
}

/// Until the recording ends. False: the connection broke, or the node said what cannot be.
bool TraceRecording::take(TracePart& part, RespClient& client, const std::string& id) {
  std::optional<Answer> first;
  bool stopping = false;
  int takes = 0;
  for (;;) {
    if (!stopping && stopped()) {
      stopping = true;
      if (const auto stop = client.call({"LEASEHOLD", "TRACE", "STOP", id}, kPatience); !stop) {
        part.text = stop.error().message;
        return false;
      }
    }
    const Duration asked = now_here();
    const auto reply = client.call({"LEASEHOLD", "TRACE", "NEXT", id}, kPatience);
    const Duration answered = now_here();
    if (!reply) {
      part.text = reply.error().message;
      return false;
    }
    if (reply.value().kind == RespValue::Kind::error) {
      part.text = reply.value().text;
      return true;
    }
    const bool pair = reply.value().items.size() == 2;
    const std::optional<Answer> head = pair ? answer_of(reply.value().items[0]) : std::nullopt;
    if (!head || !is_instant(head->number("holder_ns")) ||
        Duration(head->number("holder_ns")) < part.end || head->number("dropped") < 0 ||
        Duration(head->number("holder_ns")) - part.begin > story::kTraceSpanMax) {
      part.text = kOtherForm;
      return true;
    }
    if (!take_records(part, reply.value().items[1])) {
      part.text = kOtherForm;
      return true;
    }
    if (!first) first = head;
    const Duration shown(head->number("holder_ns"));
    part.end = std::max(part.end, shown);
    part.probes.push_back({asked, shown, answered});
    part.dropped = static_cast<std::uint64_t>(head->number("dropped"));
    part.reads = reads_between(*first, *head);
    const bool more = head->number("more") == 1;
    const std::string ended = head->text("ended");
    if (!more && !ended.empty()) {
      part.ended = ended == "whole" ? "whole" : "stopped";
      return true;
    }
    takes = more ? takes + 1 : 0;
    if (takes > kTakesMax) stop();
    if (!more && !stopping) wait(kTakePause);
  }
}

bool TraceRecording::take_records(TracePart& part, const RespValue& records) {
  for (const RespValue& line : records.items) {
    Result<story::Record> record = story::decode_record(line.text);
    if (!record) return false;
    const Duration last = part.records.empty() ? part.begin : part.records.back().at;
    const Duration at = record.value().at;
    if (record.value().node != part.node || record.value().kind == story::Kind::run || at < last ||
        at - part.begin > story::kTraceSpanMax) {
      return false;
    }
    part.end = std::max(part.end, at);
    part.records.push_back(std::move(record).value());
    // The file would not be read.
    if (++records_ >= story::kClusterRecordsMax - 100'000) {
      stop();
      if (records_ >= story::kClusterRecordsMax) {
        ++part.dropped;
        part.records.pop_back();
      }
    }
  }
  return true;
}

}  // namespace leasehold::cli
