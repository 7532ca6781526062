#include <leasehold/story/span.h>
#include <leasehold/story/telling.h>
#include <leasehold/story/trace_file.h>

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <utility>

namespace leasehold::story {

const char* const kTellingUsage =
    "  --story             tell the run: which node promised what to which leader until when,\n"
    "                      which acknowledgement extended a lease, which vote was refused and why\n"
    "  --story-full        tell every event of it, messages too\n"
    "  --trace FILE        write one JSON line per event (docs/formats/trace.md)\n"
    "  --from T, --until T tell and write only this part, as 600ms or 12.5s of true time\n";

namespace {

/// Records that later ones build on, and not only news.
bool is_state(Kind kind) {
  switch (kind) {
    case Kind::run:
    case Kind::start:
    case Kind::crash:
    case Kind::notice:
    case Kind::pause:
    case Kind::suspend:
    case Kind::resume:
    case Kind::clock:
    case Kind::role:
    case Kind::leader:
    case Kind::promise:
    case Kind::unpromised:
    case Kind::lease:
    case Kind::lease_lost: return true;
    default: return false;
  }
}

}  // namespace

std::optional<std::string> take_telling_option(const std::vector<std::string>& words,
                                               std::size_t& at, TellingOptions& options) {
  const std::string& name = words[at];
  if (name == "--story" || name == "--story-full") {
    options.story = true;
    if (name == "--story-full") options.full = true;
    return "";
  }
  if (name != "--trace" && name != "--from" && name != "--until") return std::nullopt;
  if (at + 1 == words.size()) return name + " needs a value";
  const std::string& value = words[++at];
  if (name == "--trace") {
    if (value.empty() || value[0] == '-') {
      return fmt::format("--trace does not take `{}`: a file", value);
    }
    options.trace = value;
    return "";
  }
  const std::optional<Duration> span = parse_span(value);
  if (!span) return fmt::format("{} does not take `{}`; allowed: 600ms, 12.5s", name, value);
  (name == "--from" ? options.from : options.until) = *span;
  return "";
}

Telling::Telling(TellingOptions options)
    : options_(std::move(options)), teller_([this](const std::string& line) {
        if (options_.story && inside_ && !over_) std::printf("%s\n", line.c_str());
      }) {
  teller_.set_detail(options_.full ? Detail::full : Detail::brief);
}

Result<void> Telling::open() {
  if (options_.trace.empty()) return {};
  trace_ = std::make_unique<std::ofstream>(options_.trace, std::ios::binary | std::ios::trunc);
  if (*trace_) return {};
  return Error{ErrorCode::io, options_.trace + " cannot be written; is its folder there?"};
}

void Telling::take(const Record& record) {
  if (options_.until && record.at > *options_.until && !over_) {
    teller_.pass(*options_.until);
    teller_.flush();
    over_ = true;
  }
  if (over_) return;
  const bool inside = !options_.from || record.at >= *options_.from;
  if (inside && !inside_) {
    // The sums of what came before are not part of it.
    if (options_.from) teller_.pass(*options_.from);
    teller_.flush();
    inside_ = true;
  }
  if (trace_ != nullptr && (inside || is_state(record.kind)))
    *trace_ << encode_record(record) << '\n';
  teller_.tell(record);
}

Result<void> Telling::finish() {
  teller_.flush();
  if (trace_ == nullptr) return {};
  trace_->flush();
  if (*trace_) return {};
  return Error{ErrorCode::io, options_.trace + " could not be written; is the disk full?"};
}

}  // namespace leasehold::story
