#include <leasehold/base/assert.h>
#include <leasehold/kv/evaluate_slots.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::kv {
namespace {

using Records = std::vector<std::pair<std::uint32_t, SlotRecord>>;

/// No watcher sees it.
void raise_revision(SlotDraft draft) {
  Revision told;
  told.number = ++draft.counters.revision;
  draft.backend.tell(told);
}

void write(const Records& records, SlotDraft draft) {
  if (records.empty()) return;
  raise_revision(draft);
  draft.slots.set(records);
}

bool begins_here(std::uint32_t slot, std::uint32_t group, std::uint32_t groups) {
  return first_group_of(slot, groups) + 1 == group;
}

Reply busy(std::string text) {
  return ErrorReply{ErrorKind::slot_busy, std::move(text) + "; nothing was done"};
}

/// The records of a move of this group's slots that `chosen` accepts.
template <class Chosen>
Records of_move(std::uint64_t move, SlotDraft draft, const Chosen& chosen) {
  Records found;
  for (const auto& [slot, record] : draft.slots.all()) {
    if (record.move == move && chosen(record)) found.emplace_back(slot, record);
  }
  return found;
}

bool is_leaving(const SlotRecord& record) {
  return record.phase == SlotPhase::copying || record.phase == SlotPhase::frozen;
}

bool arrives(const SlotRecord& record, std::uint32_t from, std::uint64_t move) {
  return record.phase == SlotPhase::arriving && record.other == from && record.move == move;
}

/// Why an attempt with these slots, which are ascending, is not one of the whole of these moves. An
/// earlier driver takes all that it has copied when it has frozen what is left of its move: a slot
/// that is not of it any more would be here and there.
std::optional<std::string> divided(const std::set<std::uint64_t>& moves,
                                   const std::vector<std::uint32_t>& slots, SlotDraft draft) {
  if (moves.empty()) return std::nullopt;
  for (const auto& [slot, record] : draft.slots.all()) {
    if (!is_leaving(record) || moves.count(record.move) == 0) continue;
    if (std::binary_search(slots.begin(), slots.end(), slot)) continue;
    return fmt::format("slot {} is on its way to group {} in one move with some of these", slot,
                       record.other);
  }
  return std::nullopt;
}

/// Why a lease that a client holds keeps a slot of these; none: none does.
std::optional<std::string> held_by(const grant::LeaseTable& leases, const Records& moved) {
  const auto is_moved = [&moved](std::string_view key) {
    const std::uint32_t slot = slot_of(key);
    const auto at = std::lower_bound(moved.begin(), moved.end(), slot,
                                     [](const auto& one, auto of) { return one.first < of; });
    return at != moved.end() && at->first == slot;
  };
  constexpr std::size_t kAtATime = 1024;
  grant::LeaseId after(0);
  for (;;) {
    const auto some = leases.list(after, kAtATime);
    for (const grant::LeaseTable::Lease& lease : some) {
      // Those of keys go with the keys, and are behind all others.
      if (grant::is_of_key(lease.id)) return std::nullopt;
      after = lease.id;
      if (!lease.name.empty() && is_moved(lease.name)) {
        return fmt::format("slot {} has the name of lease {}", slot_of(lease.name),
                           lease.id.value());
      }
      const auto* keys = leases.keys(lease.id);
      if (keys == nullptr) continue;
      for (const std::string& key : *keys) {
        if (!is_moved(key)) continue;
        return fmt::format("slot {} has a key of lease {}", slot_of(key), lease.id.value());
      }
    }
    if (some.size() < kAtATime) return std::nullopt;
  }
}

}  // namespace

Result<Reply> run(const BeginMove& begin, SlotDraft draft) {
  Records records;
  std::set<std::uint64_t> moves;
  bool frozen = false;
  for (const std::uint32_t slot : begin.slots) {
    const SlotRecord* const found = draft.slots.find(slot);
    SlotRecord record = found == nullptr ? SlotRecord{} : *found;
    const bool here = found == nullptr ? begins_here(slot, begin.group, begin.groups)
                                       : serves(found) || found->phase == SlotPhase::frozen;
    if (!here) {
      return Reply(ErrorReply{ErrorKind::moved,
                              fmt::format("slot {} is not of this group; nothing was done", slot)});
    }
    const bool is_frozen = record.phase == SlotPhase::frozen;
    if (is_frozen && record.other != begin.to) {
      return busy(fmt::format("slot {} is on its way to group {}", slot, record.other));
    }
    if (!records.empty() && frozen != is_frozen) {
      return busy("some of these slots are on their way already, and some are not");
    }
    frozen = is_frozen;
    if (is_leaving(record)) moves.insert(record.move);
    if (!frozen) record.phase = SlotPhase::copying;
    record.other = begin.to;
    record.move = draft.counters.revision + 1;
    records.emplace_back(slot, record);
  }
  if (auto why = divided(moves, begin.slots, draft)) return busy(*std::move(why));
  write(records, draft);
  return Reply(integer(draft.counters.revision));
}

Result<Reply> run(const RetryMove& retry, SlotDraft draft) {
  Records records = of_move(retry.move, draft, is_leaving);
  const auto is_slot = [](const auto& one, std::uint32_t slot) { return one.first == slot; };
  if (!std::equal(records.begin(), records.end(), retry.slots.begin(), retry.slots.end(),
                  is_slot)) {
    return Reply(Nil{});
  }
  for (auto& [slot, record] : records) record.move = draft.counters.revision + 1;
  write(records, draft);
  return Reply(integer(draft.counters.revision));
}

Result<Reply> run(const CancelMove& cancel, SlotDraft draft) {
  Records records = of_move(cancel.move, draft, [](const SlotRecord& record) {
    return record.phase == SlotPhase::copying;
  });
  // Without the number: one of the other group's moves to here may have the same.
  for (auto& [slot, record] : records) record = {SlotPhase::owned, record.epoch, 0, 0, 0};
  write(records, draft);
  return Reply(integer(records.size()));
}

Result<Reply> run(const FreezeMove& freeze, SlotDraft draft) {
  Records records = of_move(freeze.move, draft, is_leaving);
  if (records.empty()) return Reply(Nil{});
  const bool fresh = records.front().second.phase == SlotPhase::copying;
  if (fresh) {
    if (auto why = held_by(draft.backend.leases(), records)) return busy(*std::move(why));
    for (auto& [slot, record] : records) record.phase = SlotPhase::frozen;
    write(records, draft);
  }
  return Reply(integer(draft.counters.revision));
}

Result<Reply> run(const ExpectSlots& expect, SlotDraft draft) {
  Records records;
  std::size_t taken = 0;
  std::uint64_t keys = 0;
  for (const ExpectedSlot& expected : expect.slots) {
    const SlotRecord* const found = draft.slots.find(expected.slot);
    if (found == nullptr && begins_here(expected.slot, expect.group, expect.groups)) {
      return busy(fmt::format("slot {} has never left this group", expected.slot));
    }
    const bool arriving = found != nullptr && found->phase == SlotPhase::arriving;
    if (found != nullptr && !arriving && found->epoch >= expected.epoch) {
      ++taken;
      continue;
    }
    if (arriving) keys += found->keys;
    if (arriving && found->epoch == expected.epoch && arrives(*found, expect.from, expect.move)) {
      continue;
    }
    // Of one epoch there are only moves from one group, whose later ones have larger numbers.
    if (arriving && (found->epoch > expected.epoch ||
                     (found->epoch == expected.epoch && found->move > expect.move))) {
      return Reply(Nil{});
    }
    if (found != nullptr && !arriving && found->phase != SlotPhase::gone) {
      return busy(fmt::format("slot {} has not left this group as a whole", expected.slot));
    }
    // The keys of an earlier attempt are this one's from here on, to keep or to change: while the
    // earlier one still counted, its driver could take the slot without them.
    const std::uint64_t here = arriving ? found->keys : 0;
    records.emplace_back(expected.slot, SlotRecord{SlotPhase::arriving, expected.epoch, expect.from,
                                                   expect.move, here});
  }
  if (taken == expect.slots.size()) return Reply(integer(1));
  if (taken > 0) return busy("this group has taken some of these slots, and not the others");
  // A client may have such a lease here, in the group that it has selected. From here on it would
  // be sought in the other one, and granted there once more.
  if (auto why = held_by(draft.backend.leases(), records)) return busy(*std::move(why));
  write(records, draft);
  return Reply(integer(keys == 0 ? 0 : 2));
}

Result<Reply> run(const ImportKeys& import, SlotDraft draft) {
  std::vector<std::optional<Value>> before;
  std::vector<grant::FencingToken> fences;
  std::map<std::uint32_t, SlotRecord> records;
  std::size_t timed = 0;
  for (const MovedKey& key : import.keys) {
    const std::uint32_t slot = slot_of(key.key);
    const SlotRecord* const record = draft.slots.find(slot);
    if (record == nullptr || !arrives(*record, import.from, import.move)) return Reply(Nil{});
    records.emplace(slot, *record);
    auto loaded = draft.backend.load(key.key);
    if (!loaded) return loaded.error();
    before.push_back(std::move(loaded).value());
    const auto fence = draft.backend.fence(key.key);
    if (!fence) return fence.error();
    fences.push_back(fence.value());
    timed += key.ttl ? 1 : 0;
  }
  grant::LeaseTable& leases = draft.backend.leases();
  if (timed > 0 && leases.size() + timed > grant::kLeasesMax) {
    return Reply(ErrorReply{
        ErrorKind::limit,
        fmt::format("there would be more than {} leases: each key that ends by itself has one; "
                    "nothing was done",
                    grant::kLeasesMax)});
  }
  raise_revision(draft);
  for (std::size_t i = 0; i < import.keys.size(); ++i) {
    const MovedKey& moved = import.keys[i];
    const std::optional<Value>& old = before[i];
    std::uint64_t& count = records.at(slot_of(moved.key)).keys;
    if (old && old->lease != grant::LeaseId(0)) leases.detach(old->lease, moved.key);
    if (old && count > 0) --count;
    if (moved.exists) {
      Value value{Bytes(moved.value), moved.create_revision, moved.mod_revision, moved.version};
      if (moved.ttl) {
        const auto own =
            leases.grant_to_key(*moved.ttl, grant::FencingToken(draft.counters.revision));
        LEASEHOLD_ASSERT(own);
        const auto attached = leases.attach(*own, moved.key);
        LEASEHOLD_ASSERT(attached == grant::LeaseTable::Attached::attached);
        value.lease = *own;
      }
      draft.backend.put(moved.key, std::move(value));
      ++count;
    } else if (old) {
      draft.backend.erase(moved.key);
    }
    if (moved.token > fences[i]) {
      draft.backend.put_fence(moved.key, moved.token, fences[i] == grant::FencingToken(0));
    }
  }
  draft.slots.set({records.begin(), records.end()});
  return Reply(integer(import.keys.size()));
}

Result<Reply> run(const TakeSlots& take, SlotDraft draft) {
  Records records;
  std::size_t here = 0;
  for (const auto& [slot, record] : draft.slots.all()) {
    if (record.other != take.from || record.move != take.move) continue;
    if (record.phase == SlotPhase::owned) ++here;
    if (record.phase == SlotPhase::arriving) records.emplace_back(slot, record);
  }
  for (auto& [slot, record] : records) {
    draft.counters.keys += std::exchange(record.keys, 0);
    record.phase = SlotPhase::owned;
  }
  if (!records.empty() && take.revision > draft.counters.revision) {
    draft.counters.revision = take.revision;
    draft.backend.skip_to(take.revision);
  }
  write(records, draft);
  for (const auto& [slot, record] : records) draft.slots.note_taken(slot, draft.counters.revision);
  if (records.size() + here == 0) return Reply(Nil{});
  return Reply(integer(records.size() + here));
}

Result<Reply> run(const LeaveSlots& leave, SlotDraft draft) {
  Records records = of_move(leave.move, draft, [](const SlotRecord& record) {
    return record.phase == SlotPhase::frozen;
  });
  for (auto& [slot, record] : records) {
    record.phase = SlotPhase::left;
    ++record.epoch;
  }
  write(records, draft);
  return Reply(integer(records.size()));
}

Result<Reply> run(const DropKeys& drop, SlotDraft draft) {
  std::vector<std::pair<std::string_view, Value>> found;
  std::map<std::uint32_t, SlotRecord> arriving;
  for (const std::string_view key : drop.keys) {
    const std::uint32_t slot = slot_of(key);
    const SlotRecord* const record = draft.slots.find(slot);
    if (record == nullptr || record->other != drop.other || record->move != drop.move) continue;
    const bool arrives = record->phase == SlotPhase::arriving;
    if (!arrives && record->phase != SlotPhase::left) continue;
    auto loaded = draft.backend.load(key);
    if (!loaded) return loaded.error();
    if (!loaded.value()) continue;
    found.emplace_back(key, *std::move(loaded).value());
    std::uint64_t& count =
        arrives ? arriving.emplace(slot, *record).first->second.keys : draft.counters.keys;
    if (count > 0) --count;
  }
  if (found.empty()) return Reply(integer(0));
  raise_revision(draft);
  grant::LeaseTable& leases = draft.backend.leases();
  for (const auto& [key, value] : found) {
    if (value.lease != grant::LeaseId(0)) leases.detach(value.lease, key);
    draft.backend.erase(key);
  }
  if (!arriving.empty()) draft.slots.set({arriving.begin(), arriving.end()});
  return Reply(integer(found.size()));
}

Result<Reply> run(const ForgetSlots& forget, SlotDraft draft) {
  Records records = of_move(forget.move, draft, [&forget](const SlotRecord& record) {
    const SlotPhase phase = forget.arriving ? SlotPhase::arriving : SlotPhase::left;
    return record.phase == phase && record.keys == 0 && record.other == forget.other;
  });
  for (auto& [slot, record] : records) {
    // It has not come, so it has changed its group once less.
    if (record.phase == SlotPhase::arriving) --record.epoch;
    record.phase = SlotPhase::gone;
  }
  write(records, draft);
  return Reply(integer(records.size()));
}

}  // namespace leasehold::kv
