#include <leasehold/base/assert.h>
#include <leasehold/sim/judge/watch_oracle.h>
#include <leasehold/sim/judge/words.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace leasehold::sim {
namespace {

void mix(std::uint64_t& digest, std::string_view bytes) {
  for (const char c : bytes) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  digest = (digest ^ bytes.size()) * 0x9e3779b97f4a7c15U;
}

bool same(const kv::Event& a, const kv::Event& b) {
  return a.kind == b.kind && a.cause == b.cause && a.value_kept == b.value_kept && a.key == b.key &&
         a.value == b.value && a.create_revision == b.create_revision && a.version == b.version &&
         a.lease == b.lease;
}

}  // namespace

void WatchOracle::note_endings(grant::LeaseId id, kv::EventKind kind, const LeaseCells& cells) {
  if (cells.table.find(id) == nullptr) return;
  const grant::LeaseTable::Keys& keys = *cells.table.keys(id);
  for (const std::string& key : keys) endings_[key] = {kind, id};
}

void WatchOracle::before(std::string_view command, const LeaseCells& cells) {
  endings_.clear();
  const auto decoded = kv::decode_command(command);
  LEASEHOLD_ASSERT(decoded.ok());
  if (const auto* revoke = std::get_if<kv::RevokeLease>(&decoded.value())) {
    note_endings(revoke->id, kv::EventKind::revoked, cells);
  }
  if (const auto* expire = std::get_if<kv::ExpireLeases>(&decoded.value())) {
    for (const kv::SeenLease& seen : expire->leases) {
      note_endings(seen.id, kv::EventKind::expired, cells);
    }
  }
}

void WatchOracle::after(raft::LogId id, const LeaseCells& cells, std::vector<kv::Revision> told) {
  check_events(id, cells, told);
  std::uint64_t digest = 0;
  for (const auto& [key, value] : cells.cells) {
    mix(digest, key);
    mix(digest, value.bytes.view());
  }
  for (kv::Revision& revision : told) committed_.push_back({std::move(revision), digest});
}

void WatchOracle::check_events(raft::LogId id, const LeaseCells& cells,
                               const std::vector<kv::Revision>& told) {
  // What one command does has one revision.
  if (told.size() > 1 || committed_.size() + told.size() != cells.revision ||
      (!told.empty() && told[0].number != cells.revision)) {
    world_.fail("watch",
                fmt::format("{} leads to revision {}, and watchers were to be told another",
                            id_text(id), cells.revision));
    return;
  }
  for (const auto& [key, ending] : endings_) {
    if (const auto* lease = cells.table.find(ending.lease); lease && !lease->delayed) continue;
    bool said = false;
    for (const kv::Revision& revision : told) {
      for (const kv::Event& event : revision.events) {
        said |= event.key == key && event.kind == ending.kind && event.lease == ending.lease;
      }
    }
    if (said) continue;
    world_.fail("watch",
                fmt::format("{} ends lease {}, and no event says that the key {} went with it",
                            id_text(id), ending.lease.value(), key));
  }
}

void WatchOracle::check_copy(std::uint64_t watcher, std::uint64_t revision, const Copy& copy) {
  std::uint64_t digest = 0;
  for (const auto& [key, value] : copy) {
    mix(digest, key);
    mix(digest, value);
  }
  const std::uint64_t expected = revision == 0 ? 0 : committed_[revision - 1].digest;
  if (digest == expected) return;
  world_.fail("watch",
              fmt::format("watcher {} has other keys or values at revision {} than there were",
                          watcher, revision));
}

void WatchOracle::resynced(std::uint64_t watcher, std::uint64_t revision, const Copy& copy) {
  ++resyncs_;
  if (revision > committed_.size()) {
    world_.fail("watch", fmt::format("watcher {} has read revision {}, which is not committed",
                                     watcher, revision));
    return;
  }
  seen_[watcher] = revision;
  check_copy(watcher, revision, copy);
}

void WatchOracle::told(std::uint64_t watcher, const kv::Revision& revision, const Copy& copy) {
  ++revisions_told_;
  const std::string what = fmt::format("watcher {} got revision {}", watcher, revision.number);
  std::uint64_t& seen = seen_[watcher];
  if (revision.number != seen + 1) {
    return world_.fail("watch", fmt::format("{} after {}", what, seen));
  }
  if (revision.number > committed_.size()) {
    return world_.fail("watch", what + ", which is not committed");
  }
  seen = revision.number;
  const std::vector<kv::Event>& events = committed_[revision.number - 1].revision.events;
  if (events.size() != revision.events.size() ||
      !std::equal(events.begin(), events.end(), revision.events.begin(), same)) {
    return world_.fail("watch", what + " with other events than it was committed with");
  }
  check_copy(watcher, revision.number, copy);
}

}  // namespace leasehold::sim
