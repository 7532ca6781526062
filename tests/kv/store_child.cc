// A process that applies commands to a store and dies without warning.
//
//   kv_store_child DIR SEED UPTO FLUSH_AT
//
// Applies the commands of SEED from the durable index on up to number UPTO, flushes after FLUSH_AT,
// and kills itself. Exits with 1 if the store does not open, 2 if it does not flush.
#include <leasehold/tests/kv/store_support.h>

#include <csignal>

int main(int argc, char** argv) {
  namespace kv = leasehold::kv;
  namespace raft = leasehold::raft;
  if (argc != 5) return 3;
  const std::size_t upto = std::strtoull(argv[3], nullptr, 10);
  const std::size_t flush_at = std::strtoull(argv[4], nullptr, 10);
  kv::testing::CommandSource source(std::strtoull(argv[2], nullptr, 10));
  const auto opened = kv::RocksdbStore::open(kv::testing::store_options(argv[1]));
  if (!opened) return 1;
  kv::RocksdbStore& store = *opened.value();
  for (std::size_t index = 1; index <= upto; ++index) {
    const leasehold::Bytes command = source.next();
    if (index <= store.durable_index().value()) continue;
    store.apply({{{raft::Term(1), raft::Index(index)}, command.view()}}, raft::Index(index));
    if (index == flush_at && !store.flush()) return 2;
  }
  return std::raise(SIGKILL);
}
