// Prints what the log of a node that does not run holds, as a starting node reads it.
//
//   log_dump FOLDER NODE CLUSTER-HEX [--entries | --groups]
//
// With --groups the folder is that of a node of many groups: `group N` begins what is of each.
// Opening writes to the folder (a new incarnation, the end of the log): give it a copy. Status: 0
// printed, 1 the log refuses the folder (the reason is on stderr), 2 wrong arguments.
#include <leasehold/storage/segment_log.h>
#include <leasehold/storage/shared_log.h>

#include <cinttypes>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

namespace leasehold::storage {
namespace {

constexpr int kRefused = 1, kBadArguments = 2;
constexpr std::size_t kReadBytesMax = std::size_t{4} << 20U;

/// Hands over one answer at a time.
class OneAnswer final : public StorageSink {
 public:
  void persisted(raft::ReadyId) override {}
  void entries_read(std::uint64_t, Result<std::vector<raft::Entry>> entries) override {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(entries);
    changed_.notify_all();
  }
  void failed(Error error) override {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(error);
    changed_.notify_all();
  }
  void space(bool) override {}

  Result<std::vector<raft::Entry>> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return answer_.has_value(); });
    auto answer = std::move(*answer_);
    answer_.reset();
    return answer;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Result<std::vector<raft::Entry>>> answer_;
};

std::size_t digest(std::string_view bytes) {
  return std::hash<std::string_view>{}(bytes);
}

std::size_t digest(const raft::Membership& membership) {
  const Bytes bytes = raft::encode_membership(membership);
  return digest(bytes.view());
}

void print(const NodeIdentity& self, const raft::InitialState& state) {
  const raft::HardState& hard = state.hard_state;
  std::printf("uuid %016" PRIx64 "%016" PRIx64 "\n", self.uuid.high, self.uuid.low);
  std::printf("incarnation %" PRIu64 "\n", self.incarnation.value());
  std::printf("term %" PRIu64 "\n", hard.term.value());
  std::printf("voted_for %" PRIu64 "\n", hard.voted_for.value());
  std::printf("vote_committed %d\n", hard.vote_committed ? 1 : 0);
  std::printf("promise %" PRIu64 " %" PRIu64 " %" PRId64 "\n", hard.promise.holder.value(),
              hard.promise.term.value(), static_cast<std::int64_t>(hard.promise.duration.count()));
  std::printf("base %" PRIu64 " %" PRIu64 " %zx\n", state.base.term.value(),
              state.base.index.value(), digest(state.base_membership));
  for (const auto& [index, membership] : state.memberships) {
    std::printf("entry_membership %" PRIu64 " %zx\n", index.value(), digest(membership));
  }
  std::printf("last %" PRIu64 "\n", state.last_index.value());
}

int refused(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return kRefused;
}

int print_entries(SegmentLog& log, raft::Index first, raft::Index last) {
  OneAnswer sink;
  log.start(sink);
  for (std::uint64_t next = first.value(); next <= last.value();) {
    log.read({1, raft::Index(next), last, kReadBytesMax});
    const auto entries = sink.take();
    if (!entries) return refused(entries.error());
    for (const raft::Entry& entry : entries.value()) {
      std::printf("entry %" PRIu64 " %" PRIu64 " %d %zx\n", entry.id.index.value(),
                  entry.id.term.value(), static_cast<int>(entry.kind),
                  digest(entry.payload.view()));
    }
    next += entries.value().size();
  }
  return 0;
}

SegmentLogOptions options_of(char** words) {
  SegmentLogOptions options;
  options.dir = words[1];
  options.group = raft::GroupId(1);
  options.id = raft::NodeId(std::strtoull(words[2], nullptr, 10));
  options.cluster_id = std::strtoull(words[3], nullptr, 16);
  return options;
}

int dump_one(const SegmentLogOptions& options, bool entries) {
  auto opened = SegmentLog::open(options);
  if (!opened) return refused(opened.error());
  SegmentLog& log = *opened.value();
  if (!log.formed()) {
    std::puts("last 0");
    return 0;
  }
  const auto state = log.take_initial_state();
  print(log.identity(), state);
  return entries ? print_entries(log, raft::Index(state.base.index.value() + 1), state.last_index)
                 : 0;
}

int dump_groups(const SegmentLogOptions& options) {
  auto opened = SharedLog::open(options);
  if (!opened) return refused(opened.error());
  for (const raft::GroupId group : opened.value()->groups()) {
    auto log = opened.value()->open_group(group);
    if (!log) return refused(log.error());
    std::printf("group %" PRIu64 "\n", group.value());
    if (log.value()->formed()) {
      print(opened.value()->identity(), log.value()->take_initial_state());
    } else {
      std::puts("last 0");
    }
  }
  return 0;
}

}  // namespace
}  // namespace leasehold::storage

int main(int argc, char** argv) {
  const bool entries = argc == 5 && std::strcmp(argv[4], "--entries") == 0;
  const bool groups = argc == 5 && std::strcmp(argv[4], "--groups") == 0;
  if (argc != 4 && !entries && !groups) {
    std::fputs("usage: log_dump FOLDER NODE CLUSTER-HEX [--entries | --groups]\n", stderr);
    return leasehold::storage::kBadArguments;
  }
  const auto options = leasehold::storage::options_of(argv);
  return groups ? leasehold::storage::dump_groups(options)
                : leasehold::storage::dump_one(options, entries);
}
