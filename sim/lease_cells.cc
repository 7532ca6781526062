#include <leasehold/base/assert.h>
#include <leasehold/sim/lease_cells.h>

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
  void put_fence(std::string_view key, grant::FencingToken token) override {
    cells_.fences.insert_or_assign(std::string(key), token);
  }
  grant::LeaseTable& leases() override { return cells_.table; }
  void tell(const kv::Revision& revision) override {
    if (told_ != nullptr) told_->push_back(copy_of(revision));
  }

 private:
  LeaseCells& cells_;
  std::vector<kv::Revision>* told_;
};

void put(std::string& out, std::uint64_t number) {
  for (int i = 0; i < 8; ++i) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(number >> (8 * i))));
  }
}

void put(std::string& out, std::string_view text) {
  put(out, std::uint64_t{text.size()});
  out.append(text);
}

/// Reads from the front; after the end everything is 0 or empty, and `good` is false.
struct Reader {
  std::string_view left;
  bool good = true;

  std::uint64_t number() {
    std::uint64_t out = 0;
    const std::string_view bytes = take(8);
    for (std::size_t i = bytes.size(); i > 0; --i) {
      out = (out << 8U) | static_cast<unsigned char>(bytes[i - 1]);
    }
    return out;
  }
  std::string text() { return std::string(take(number())); }
  std::string_view take(std::uint64_t count) {
    good = good && count <= left.size();
    if (!good) return {};
    const std::string_view out = left.substr(0, static_cast<std::size_t>(count));
    left.remove_prefix(out.size());
    return out;
  }
};

}  // namespace

Bytes LeaseCells::apply(raft::Term term, std::string_view command,
                        std::vector<kv::Revision>* told) {
  Backend backend(*this, told);
  kv::Sessions none;
  kv::Counters counters{revision, cells.size()};
  auto reply = kv::evaluate(command, term, backend, none, counters);
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
  put(out, revision);
  put(out, cells.size());
  for (const auto& [key, value] : cells) {
    put(out, key);
    put(out, value.bytes.view());
    for (const std::uint64_t number :
         {value.create_revision, value.mod_revision, value.version, value.lease.value()}) {
      put(out, number);
    }
  }
  put(out, fences.size());
  for (const auto& [key, token] : fences) {
    put(out, key);
    put(out, token.value());
  }
  put(out, table.newest().value());
  put(out, table.newest_stamp());
  put(out, table.size());
  for (const auto& lease : table.list(grant::LeaseId(0), table.size())) {
    put(out, lease.id.value());
    put(out, lease.name);
    put(out, lease.holder);
    put(out, static_cast<std::uint64_t>(lease.ttl.count()));
    put(out, lease.token.value());
    put(out, lease.stamp);
    put(out, lease.terms.grace.count());
    put(out, lease.terms.delay.count());
    put(out, (lease.terms.soft ? 1U : 0U) + (lease.delayed ? 2U : 0U));
    const grant::LeaseTable::Keys& keys = *table.keys(lease.id);
    put(out, keys.size());
    for (const std::string& key : keys) put(out, key);
  }
  return out;
}

std::optional<LeaseCells> LeaseCells::decode(std::string_view bytes) {
  LeaseCells out;
  Reader in{bytes};
  out.revision = in.number();
  const std::uint64_t cells = in.number();
  for (std::uint64_t i = 0; i < cells && in.good; ++i) {
    const std::string key = in.text();
    kv::Value& value = out.cells[key];
    value.bytes = Bytes(in.text());
    value.create_revision = in.number();
    value.mod_revision = in.number();
    value.version = in.number();
    value.lease = grant::LeaseId(in.number());
  }
  const std::uint64_t fences = in.number();
  for (std::uint64_t i = 0; i < fences && in.good; ++i) {
    const std::string key = in.text();
    out.fences[key] = grant::FencingToken(in.number());
  }
  const grant::LeaseId newest(in.number());
  out.table.restore_newest(newest, in.number());
  const std::uint64_t leases = in.number();
  for (std::uint64_t i = 0; i < leases && in.good; ++i) {
    grant::LeaseTable::Lease lease;
    lease.id = grant::LeaseId(in.number());
    lease.name = in.text();
    lease.holder = in.text();
    lease.ttl = lease::Duration(static_cast<std::int64_t>(in.number()));
    lease.token = grant::FencingToken(in.number());
    lease.stamp = in.number();
    lease.terms.grace = grant::LeaseTerms::Milliseconds(in.number());
    lease.terms.delay = grant::LeaseTerms::Milliseconds(in.number());
    const std::uint64_t flags = in.number();
    lease.terms.soft = (flags & 1U) != 0;
    lease.delayed = (flags & 2U) != 0;
    grant::LeaseTable::Keys keys;
    const std::uint64_t count = in.number();
    for (std::uint64_t k = 0; k < count && in.good; ++k) keys.insert(in.text());
    if (!out.table.restore(lease, std::move(keys))) return std::nullopt;
  }
  if (!in.good || !in.left.empty() || !out.table.restored()) return std::nullopt;
  return out;
}

}  // namespace leasehold::sim
