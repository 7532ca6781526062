// A process that works on a store and dies without warning.
//
//   kv_store_child apply DIR SEED UPTO FLUSH_AT
//
// Applies the commands of SEED from the durable index on up to number UPTO, flushes after FLUSH_AT,
// and kills itself. Exits with 1 if the store does not open, 2 if it does not flush.
//
//   kv_store_child install DIR ARCHIVE KILL_AT
//   kv_store_child restore DIR ARCHIVE KILL_AT
//   kv_store_child take DIR - KILL_AT
//
// Opens the store in DIR and installs the file ARCHIVE (or makes the store of it, or takes a
// snapshot). Exits before change number KILL_AT of the files with kKilled, with 0 if there are
// fewer; 1 and 2 as above.
#include <leasehold/tests/kv/command_source.h>
#include <leasehold/tests/kv/snapshot_support.h>
#include <leasehold/tests/kv/store_support.h>
#include <leasehold/tests/kv/store_twin.h>
#include <leasehold/tests/kv/watched_env.h>

#include <csignal>

namespace leasehold::kv::testing {
namespace {

int apply_and_die(char** argv) {
  const std::size_t upto = std::strtoull(argv[4], nullptr, 10);
  const std::size_t flush_at = std::strtoull(argv[5], nullptr, 10);
  CommandSource source(std::strtoull(argv[3], nullptr, 10));
  const auto opened = RocksdbStore::open(store_options(argv[2]));
  if (!opened) return 1;
  RocksdbStore& store = *opened.value();
  for (std::size_t index = 1; index <= upto; ++index) {
    const Bytes command = source.next();
    if (index <= store.durable_index().value()) continue;
    store.apply({{{raft::Term(1), raft::Index(index)}, command.view()}}, raft::Index(index));
    if (index == flush_at && !store.make_durable()) return 2;
  }
  return std::raise(SIGKILL);
}

int work_and_exit(const std::string& what, char** argv) {
  static WatchedEnv env;  // RocksDB's threads outlive main()
  auto options = store_options(argv[2]);
  options.env = &env;
  env.kill_at = std::strtoull(argv[4], nullptr, 10);
  if (what == "restore") {
    return RocksdbStore::restore(options, archive_file(argv[3])) ? 0 : 2;
  }
  const auto opened = RocksdbStore::open(options);
  if (!opened) return 1;
  RocksdbStore& store = *opened.value();
  if (what == "take") return store.take_snapshot() ? 0 : 2;
  return store.install_snapshot(archive_file(argv[3])) ? 0 : 2;
}

}  // namespace
}  // namespace leasehold::kv::testing

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "apply" && argc == 6) return leasehold::kv::testing::apply_and_die(argv);
  if (argc != 5) return 3;
  return leasehold::kv::testing::work_and_exit(what, argv);
}
