// A process that writes to a log until it is killed.
//
//   log_child DIR SEED
//
// Opens the log (and forms the group if necessary), continues with random batches and prints, for
// each completion, one line with the number of the newest batch that is durable. The batches depend
// on SEED and on the log's own content alone, so the parent can tell what has to be there.
#include <leasehold/storage/segment_log.h>
#include <leasehold/tests/storage/log_support.h>

#include <cstdio>

namespace leasehold::storage::testing {
namespace {

class PrintingSink final : public StorageSink {
 public:
  explicit PrintingSink(std::uint64_t durable) : durable_(durable) {}

  void persisted(raft::ReadyId id) override {
    char line[32];
    const int length =
        std::snprintf(line, sizeof(line), "%llu\n", static_cast<unsigned long long>(id.value()));
    if (::write(STDOUT_FILENO, line, static_cast<std::size_t>(length)) != length) std::_Exit(3);
    const std::lock_guard lock(mutex_);
    durable_ = id;
    changed_.notify_all();
  }
  void entries_read(std::uint64_t, Result<std::vector<raft::Entry>>) override {}
  void space(bool) override {}
  void failed(Error) override { std::_Exit(4); }

  /// Waits until few batches are under way.
  void pace(std::uint64_t newest) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return newest < durable_.value() + 16; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  raft::ReadyId durable_;
};

int run(const char* dir, std::uint64_t seed) {
  SegmentLog::Options options;
  options.dir = dir;
  options.cluster_id = 77;
  options.id = raft::NodeId(1);
  auto opened = SegmentLog::open(options);
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    return 1;
  }
  SegmentLog& log = *opened.value();
  if (!log.confirm_set(three_voters(log.identity().uuid).members) || !log.form()) return 2;
  const auto state = log.take_initial_state();
  // The term of a sequence's batch is its number, so the hard state says where to go on.
  const std::uint64_t done = state.hard_state.term.value();
  Sequence sequence(seed);
  while (sequence.number() < done) sequence.next();
  PrintingSink sink(done);
  log.start(sink);
  for (;;) {
    const auto batch = sequence.next();
    sink.pace(batch.id.value());
    log.persist(batch);
  }
}

}  // namespace
}  // namespace leasehold::storage::testing

int main(int argc, char** argv) {
  if (argc != 3) return 5;
  return leasehold::storage::testing::run(argv[1], std::strtoull(argv[2], nullptr, 10));
}
