// log_append: what one durable entry costs in the node's own log, next to the bare disk.
#include <leasehold/bench/raw_log.h>
#include <leasehold/bench/report.h>
#include <leasehold/bench/workload.h>
#include <leasehold/storage/posix_disk.h>
#include <leasehold/storage/segment_log.h>
#include <leasehold/storage/segment_store.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <condition_variable>
#include <filesystem>
#include <iostream>
#include <memory>
#include <mutex>

namespace leasehold::bench {
namespace {

struct Options {
  std::string dir = ".";
  std::size_t entry_bytes = 256;
  unsigned blocks = 24;
  unsigned writes = 100;
  bool json = false;
};

/// Lets one thread wait for what the log reports on another.
class Waiter final : public storage::StorageSink {
 public:
  void persisted(raft::ReadyId id) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    newest_ = id;
    changed_.notify_one();
  }
  void entries_read(std::uint64_t, Result<std::vector<raft::Entry>>) override {}
  void space(bool) override {}
  void failed(Error error) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    failure_ = std::move(error);
    changed_.notify_one();
  }
  Result<void> wait_for(raft::ReadyId id) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this, id] { return failure_ || newest_ >= id; });
    if (failure_) return *failure_;
    return {};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  raft::ReadyId newest_{0};
  std::optional<Error> failure_;
};

storage::SegmentLogOptions log_options(const std::string& dir) {
  storage::SegmentLogOptions options;
  options.dir = dir;
  options.group = raft::GroupId(1);
  options.cluster_id = 1;
  options.id = raft::NodeId(1);
  return options;
}

raft::Member self_of(const storage::NodeIdentity& identity) {
  raft::Member self;
  self.id = identity.id;
  self.uuid = identity.uuid;
  self.address = "127.0.0.1:1";
  return self;
}

/// The log of a cluster of one.
struct NodeLog {
  Waiter waiter;  ///< outlives the log
  std::unique_ptr<storage::SegmentLog> log;
  std::uint64_t next = 1;

  Result<void> open(const std::string& dir) {
    auto opened = storage::SegmentLog::open(log_options(dir));
    if (!opened) return opened.error();
    log = std::move(opened).value();
    auto confirmed = log->confirm_set({self_of(log->identity())});
    if (!confirmed) return confirmed;
    auto formed = log->form();
    if (!formed) return formed;
    static_cast<void>(log->take_initial_state());
    log->start(waiter);
    return {};
  }

  Result<void> append(const Bytes& payload) {
    raft::PersistBatch batch;
    batch.id = raft::ReadyId(next);
    batch.entries.push_back(
        {{raft::Term(1), raft::Index(next)}, raft::EntryKind::command, payload});
    ++next;
    const raft::ReadyId id = batch.id;
    log->persist(std::move(batch));
    return waiter.wait_for(id);
  }
};

/// What the log's writer does, on the calling thread: without the two hand-overs between threads.
struct WriterAlone {
  std::unique_ptr<storage::SegmentStore> store;
  std::uint64_t next = 1;

  Result<void> open(const std::string& dir) {
    auto disk = storage::open_posix_disk(dir);
    if (!disk) return disk.error();
    auto opened = storage::SegmentStore::open(log_options(dir), std::move(disk).value(),
                                              storage::Sharing::one_group);
    if (!opened) return opened.error();
    store = std::move(opened).value();
    raft::Membership members;
    members.members = {self_of(store->identity())};
    members.voters = {store->identity().id};
    storage::GroupWrite formation;
    formation.body.first = raft::Index(1);
    formation.body.foundation = {members, raft::LogBase{{}, members}};
    auto laid = store->append({{formation}, {}});
    if (laid) store->start({});
    return laid;
  }

  Result<void> append(const Bytes& payload) {
    const raft::Entry entry{{raft::Term(1), raft::Index(next)}, raft::EntryKind::command, payload};
    storage::GroupWrite group;
    group.body.state.last = entry.id;
    group.body.first = entry.id.index;
    group.body.previous_term = raft::Term(next == 1 ? 0 : 1);
    group.entries = {&entry};
    ++next;
    auto written = store->append({{group}, {}});
    return written ? store->rest() : written;
  }
};

/// A folder that is removed at the end.
struct Folder {
  std::filesystem::path path;
  explicit Folder(const std::string& parent)
      : path(std::filesystem::path(parent) / fmt::format("log_append.{}", monotonic_ns())) {
    std::filesystem::create_directories(path);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

Result<void> append_raw(RawLog& log, const std::string& record) {
  auto written = log.write(record);
  return written ? log.sync() : written;
}

Result<void> measure(const Options& options) {
  const Folder folder(options.dir);
  auto preallocated = RawLog::create((folder.path / "preallocated").string(), 64U << 20U,
                                     RawLog::Growth::preallocated);
  if (!preallocated) return preallocated.error();
  auto appending =
      RawLog::create((folder.path / "appending").string(), 0, RawLog::Growth::appending);
  if (!appending) return appending.error();
  NodeLog node;
  auto opened = node.open((folder.path / "log").string());
  if (!opened) return opened;
  WriterAlone writer;
  opened = writer.open((folder.path / "writer").string());
  if (!opened) return opened;

  const std::string record(options.entry_bytes, 'r');
  const Bytes payload{std::string(record)};
  NamedHistograms rows = {{"bare, preallocated", Histogram()},
                          {"bare, appending", Histogram()},
                          {"log", Histogram()},
                          {"log, its writer alone", Histogram()}};
  for (unsigned turn = 0; turn < options.blocks; ++turn) {
    // Forwards and backwards.
    for (const unsigned place : {0U, 1U, 2U, 3U}) {
      const unsigned target = turn % 2 == 0 ? place : 3 - place;
      for (unsigned i = 0; i < options.writes; ++i) {
        const std::uint64_t began = monotonic_ns();
        auto done = target == 0   ? append_raw(preallocated.value(), record)
                    : target == 1 ? append_raw(appending.value(), record)
                    : target == 2 ? node.append(payload)
                                  : writer.append(payload);
        if (!done) return done;
        rows[target].second.record(monotonic_ns() - began);
      }
    }
  }
  std::cout << (options.json ? json_of(rows, "ns") + "\n"
                             : fmt::format("one durable entry of {} bytes\n{}", options.entry_bytes,
                                           table_of(rows, 1000.0, "us")));
  return {};
}

int run(int argc, char** argv) {
  CLI::App app(
      "What one durable entry costs in the node's log, from handing it over to its completion, "
      "beside\npwrite + fdatasync into a file of zeroes and at the end of a growing one; "
      "interleaved.");
  Options options;
  app.add_option("--dir", options.dir, "a folder on the disk to measure")->capture_default_str();
  app.add_option("--bytes", options.entry_bytes, "bytes of an entry")->capture_default_str();
  app.add_option("--blocks", options.blocks, "blocks of each")->capture_default_str();
  app.add_option("--writes", options.writes, "writes of a block")->capture_default_str();
  app.add_flag("--json", options.json, "print JSON instead of a table");
  CLI11_PARSE(app, argc, argv);

  const auto done = measure(options);
  if (!done) std::cerr << "log_append: " << done.error().message << "\n";
  return done ? 0 : 1;
}

}  // namespace
}  // namespace leasehold::bench

int main(int argc, char** argv) {
  return leasehold::bench::run(argc, argv);
}
