#include <leasehold/base/assert.h>
#include <leasehold/base/coding.h>
#include <leasehold/sim/world/lease_cells.h>

#include <deque>
#include <memory>
#include <utility>

namespace leasehold::sim {
namespace {

/// One that keeps its own bytes.
kv::Revision copy_of(const kv::Revision& revision) {
  const auto bytes = std::make_shared<std::deque<std::string>>();
  kv::Revision copy = revision;
  for (kv::Event& event : copy.events) {
    event.key = bytes->emplace_back(event.key);
    event.value = bytes->emplace_back(event.value);
  }
  copy.owner = bytes;
  return copy;
}

/// What the evaluation reads and writes.
class Backend final : public kv::Backend {
 public:
  Backend(LeaseCells& cells, std::vector<kv::Revision>* told) : cells_(cells), told_(told) {}

  Result<std::optional<kv::Value>> load(std::string_view key) override {
    const auto at = cells_.cells.find(key);
    if (at == cells_.cells.end()) return std::optional<kv::Value>();
    return std::optional<kv::Value>(at->second);
  }
  void put(std::string_view key, kv::Value value) override {
    cells_.cells.insert_or_assign(std::string(key), std::move(value));
  }
  void erase(std::string_view key) override { cells_.cells.erase(std::string(key)); }
  Result<grant::FencingToken> fence(std::string_view key) override {
    const auto at = cells_.fences.find(key);
    return at == cells_.fences.end() ? grant::FencingToken(0) : at->second;
  }
  void put_fence(std::string_view key, grant::FencingToken token, bool) override {
    cells_.fences.insert_or_assign(std::string(key), token);
  }
  std::size_t fence_count() override { return cells_.fences.size(); }
  grant::LeaseTable& leases() override { return cells_.table; }
  kv::Users& users() override { return none_; }
  void tell(const kv::Revision& revision) override {
    if (told_ != nullptr) told_->push_back(copy_of(revision));
  }

 private:
  LeaseCells& cells_;
  std::vector<kv::Revision>* told_;
  kv::Users none_;  ///< no simulated client changes users
};

/// Lengths have 8 bytes here, as all numbers.
void put_text(LittleWriter& to, std::string_view text) {
  to.u64(text.size());
  to.bytes(text);
}

std::string take_text(LittleReader& in) {
  return std::string(in.take(in.u64()));
}

}  // namespace

Bytes LeaseCells::apply(raft::Term term, std::string_view command,
                        std::vector<kv::Revision>* told) {
  Backend backend(*this, told);
  kv::Sessions none;
  kv::Counters counters{revision, cells.size()};
  auto reply = kv::evaluate({{term, raft::Index()}, command}, backend, none, counters);
  LEASEHOLD_ASSERT(reply.ok());
  LEASEHOLD_ASSERT(counters.keys == cells.size());
  revision = counters.revision;
  table.keep();
  for (const grant::LeaseId id : table.take_wanted()) ++wants[id];
  return std::move(reply).value();
}

kv::LeaseChanges LeaseCells::changes() const {
  kv::LeaseChanges changes;
  changes.whole = true;
  for (const auto& lease : table.list(grant::LeaseId(0), table.size())) {
    const auto wanted = wants.find(lease.id);
    changes.alive.push_back(kv::timed(lease, wanted == wants.end() ? 0 : wanted->second));
  }
  return changes;
}

std::string LeaseCells::encode() const {
  std::string out;
  LittleWriter to(out);
  to.u64(revision);
  to.u64(cells.size());
  for (const auto& [key, value] : cells) {
    put_text(to, key);
    put_text(to, value.bytes.view());
    for (const std::uint64_t number :
         {value.create_revision, value.mod_revision, value.version, value.lease.value()}) {
      to.u64(number);
    }
  }
  to.u64(fences.size());
  for (const auto& [key, token] : fences) {
    put_text(to, key);
    to.u64(token.value());
  }
  to.u64(table.newest().value());
  to.u64(table.newest_stamp());
  to.u64(table.size());
  for (const auto& lease : table.list(grant::LeaseId(0), table.size())) {
    to.u64(lease.id.value());
    put_text(to, lease.name);
    put_text(to, lease.holder);
    to.u64(static_cast<std::uint64_t>(lease.ttl.count()));
    to.u64(lease.token.value());
    to.u64(lease.stamp);
    to.u64(lease.terms.grace.count());
    to.u64(lease.terms.delay.count());
    to.u64((lease.terms.soft ? 1U : 0U) + (lease.delayed ? 2U : 0U));
    const grant::LeaseTable::Keys& keys = *table.keys(lease.id);
    to.u64(keys.size());
    for (const std::string& key : keys) put_text(to, key);
  }
  return out;
}

std::optional<LeaseCells> LeaseCells::decode(std::string_view bytes) {
  LeaseCells out;
  LittleReader in(bytes);
  out.revision = in.u64();
  const std::uint64_t cells = in.u64();
  for (std::uint64_t i = 0; i < cells && in.ok(); ++i) {
    const std::string key = take_text(in);
    kv::Value& value = out.cells[key];
    value.bytes = Bytes(take_text(in));
    value.create_revision = in.u64();
    value.mod_revision = in.u64();
    value.version = in.u64();
    value.lease = grant::LeaseId(in.u64());
  }
  const std::uint64_t fences = in.u64();
  for (std::uint64_t i = 0; i < fences && in.ok(); ++i) {
    const std::string key = take_text(in);
    out.fences[key] = grant::FencingToken(in.u64());
  }
  const grant::LeaseId newest(in.u64());
  out.table.restore_newest(newest, in.u64());
  const std::uint64_t leases = in.u64();
  for (std::uint64_t i = 0; i < leases && in.ok(); ++i) {
    grant::LeaseTable::Lease lease;
    lease.id = grant::LeaseId(in.u64());
    lease.name = take_text(in);
    lease.holder = take_text(in);
    lease.ttl = lease::Duration(static_cast<std::int64_t>(in.u64()));
    lease.token = grant::FencingToken(in.u64());
    lease.stamp = in.u64();
    lease.terms.grace = grant::LeaseTerms::Milliseconds(in.u64());
    lease.terms.delay = grant::LeaseTerms::Milliseconds(in.u64());
    const std::uint64_t flags = in.u64();
    lease.terms.soft = (flags & 1U) != 0;
    lease.delayed = (flags & 2U) != 0;
    grant::LeaseTable::Keys keys;
    const std::uint64_t count = in.u64();
    for (std::uint64_t k = 0; k < count && in.ok(); ++k) keys.insert(take_text(in));
    if (!out.table.restore(lease, std::move(keys))) return std::nullopt;
  }
  if (!in.at_end() || !out.table.restored()) return std::nullopt;
  return out;
}

}  // namespace leasehold::sim
