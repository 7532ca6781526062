// cost_paths RUNS: runs each path RUNS times and prints what one run allocates, as JSON. Under
// callgrind it dumps the instructions of each path; see paths.py.
#include <leasehold/bench/bare_leader.h>
#include <leasehold/kv/command.h>
#include <leasehold/kv/memory_store.h>
#include <leasehold/replica/lease_view.h>
#include <leasehold/server/front/resp.h>
#include <leasehold/storage/segment_record.h>
#include <leasehold/wire/codec.h>
#include <leasehold/wire/frame.h>

#include <fmt/format.h>
#include <valgrind/callgrind.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {
std::uint64_t allocations = 0;
}  // namespace

// Not inline: the compiler would see malloc() and free() instead, and call them no pair.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size != 0 ? size : 1)) return memory;
  std::abort();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace leasehold::cost {
namespace {

constexpr std::size_t kValueBytes = 256;
constexpr std::size_t kFrameBytesMax = std::size_t{1} << 20U;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "cost_paths: %s\n", what);
  std::exit(1);
}

using Path = std::function<void()>;

class FixedClock final : public lease::Clock {
 public:
  lease::Now now() const override { return {at_, raft::PromiseInstant(std::chrono::hours(1))}; }
  raft::HolderInstant holder_now() const override { return at_; }

 private:
  raft::HolderInstant at_{std::chrono::hours(1)};
};

/// A reader on its own thread asks whether the lease is valid.
Path lease_check() {
  auto view = std::make_shared<replica::LeaseView>();
  auto clock = std::make_shared<FixedClock>();
  raft::LeaseState state;
  state.term = raft::Term(3);
  state.end = clock->holder_now() + std::chrono::seconds(1);
  state.commit = raft::Index(9);
  view->publish(state);
  view->publish_applied(raft::Index(9));
  return [view, clock] { expect(view->readable_index(*clock).has_value(), "no lease"); };
}

/// The leader of three appends, and both others acknowledge.
Path core_appends(std::size_t entries) {
  auto leader = std::make_shared<bench::BareLeader>(3);
  return [leader, entries] {
    leader->append(entries);
    leader->acknowledge_all();
    expect(leader->core().commit_index() == leader->core().log().last_index(), "not committed");
  };
}

/// A heartbeat of the leader of three, and both acknowledgements.
Path core_heartbeat() {
  auto leader = std::make_shared<bench::BareLeader>(3);
  return [leader] {
    leader->begin_round();
    leader->acknowledge_all();
  };
}

raft::Entry entry_at(std::uint64_t index) {
  return {{raft::Term(5), raft::Index(index)},
          raft::EntryKind::command,
          Bytes(std::string(kValueBytes, 'v'))};
}

wire::PeerMessage append_request(std::size_t entries) {
  raft::AppendRequest request;
  request.term = raft::Term(5);
  request.prev = {raft::Term(5), raft::Index(999)};
  for (std::size_t i = 0; i < entries; ++i) request.entries.push_back(entry_at(1000 + i));
  request.commit = raft::Index(900);
  request.round = raft::Round(12);
  request.lease = std::chrono::seconds(1);
  return {raft::GroupId(1), std::move(request)};
}

Path message_out(std::size_t entries) {
  auto message = std::make_shared<wire::PeerMessage>(append_request(entries));
  auto out = std::make_shared<wire::SendBuffer>();
  return [message, out] {
    expect(wire::encode_message(*message, kFrameBytesMax, *out).ok(), "not encoded");
    out->consume(out->bytes());
  };
}

Path message_in(std::size_t entries) {
  wire::SendBuffer out;
  expect(wire::encode_message(append_request(entries), kFrameBytesMax, out).ok(), "not encoded");
  std::array<std::string_view, 256> pieces;
  const std::size_t count = out.front(pieces.data(), pieces.size());
  auto bytes = std::make_shared<std::string>();
  for (std::size_t i = 0; i < count; ++i) *bytes += pieces[i];
  auto reader = std::make_shared<wire::FrameReader>(kFrameBytesMax);
  return [bytes, reader] {
    reader->feed(*bytes);
    const auto frame = reader->next();
    expect(frame.ok() && frame.value() && wire::decode_message(*frame.value()).ok(), "not decoded");
    expect(!reader->next().value(), "more than one");
  };
}

/// One entry, as it goes to the disk.
Path log_frame() {
  auto out = std::make_shared<std::string>();
  auto entry = std::make_shared<raft::Entry>(entry_at(1000));
  return [out, entry] {
    storage::BatchBody body;
    body.first = entry->id.index;
    body.previous_term = entry->id.term;
    body.count = 1;
    storage::BatchEncoder encoder(*out, storage::kLogFormat);
    encoder.begin(raft::GroupId(), body);
    encoder.add(*entry);
    storage::FrameHeader header;
    header.kind = storage::FrameKind::batch;
    encoder.finish(header);
  };
}

/// A store with one key.
struct Store {
  Store() {
    kv::Set set;
    set.key = "key1";
    set.value = value;
    auto encoded = kv::encode_command(set);
    expect(encoded.ok(), "not encoded");
    command = std::move(encoded).value();
    write();
  }
  void write() {
    const raft::Index at(++index);
    expect(store.apply({{{raft::Term(1), at}, command.view()}}, at).size() == 1, "not applied");
  }

  const std::string value = std::string(kValueBytes, 'v');
  Bytes command;
  std::uint64_t index = 0;
  kv::MemoryStore store;
};

Path set_applied() {
  auto store = std::make_shared<Store>();
  return [store] { store->write(); };
}

/// From the bytes of a request to those of its reply.
Path get_answered() {
  auto store = std::make_shared<Store>();
  auto parser = std::make_shared<server::RequestParser>();
  auto out = std::make_shared<std::string>();
  return [store, parser, out] {
    out->clear();
    const auto status = parser->parse("*2\r\n$3\r\nGET\r\n$4\r\nkey1\r\n");
    expect(status == server::ParseStatus::complete, "not parsed");
    const auto found = store->store.get(parser->args()[1]);
    expect(found.ok() && found.value(), "not found");
    server::append_bulk(*out, found.value()->bytes.view());
  };
}

void measure(const std::string& name, const Path& path, std::uint64_t runs, std::string& report) {
  for (std::uint64_t i = 0; i < runs; ++i) path();  // what grows has grown
  const std::uint64_t before = allocations;
  CALLGRIND_ZERO_STATS;
  for (std::uint64_t i = 0; i < runs; ++i) path();
  CALLGRIND_DUMP_STATS_AT(name.c_str());
  const double each = static_cast<double>(allocations - before) / static_cast<double>(runs);
  report += fmt::format("{}\"{}\":{:.2f}", report.empty() ? "" : ",", name, each);
}

}  // namespace
}  // namespace leasehold::cost

int main(int argc, char** argv) {
  namespace cost = leasehold::cost;
  const std::uint64_t runs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  cost::expect(runs > 0 && argc <= 3, "usage: cost_paths RUNS [PATH]");
  const std::vector<std::pair<std::string, std::function<cost::Path()>>> paths = {
      {"lease check", cost::lease_check},
      {"core, an entry", [] { return cost::core_appends(1); }},
      {"core, 64 entries", [] { return cost::core_appends(64); }},
      {"core, a heartbeat", cost::core_heartbeat},
      {"message out, an entry", [] { return cost::message_out(1); }},
      {"message out, 64 entries", [] { return cost::message_out(64); }},
      {"message in, an entry", [] { return cost::message_in(1); }},
      {"message in, 64 entries", [] { return cost::message_in(64); }},
      {"frame of the log", cost::log_frame},
      {"SET applied", cost::set_applied},
      {"GET answered", cost::get_answered},
  };
  std::string report;
  for (const auto& [name, make] : paths) {
    if (argc < 3 || name == argv[2]) cost::measure(name, make(), runs, report);
  }
  cost::expect(!report.empty(), "there is no such path");
  fmt::print("{{{}}}\n", report);
}
