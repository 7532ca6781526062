#include <leasehold/base/assert.h>
#include <leasehold/kv/key_slot.h>
#include <leasehold/kv/local/slot_move.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

namespace leasehold::kv {
namespace {

/// Of one command: each is a round of the other group's log, and clients' commands come between.
constexpr std::size_t kCommandBytes = std::size_t{256} << 10U;
constexpr std::size_t kCommandKeys = 1024;
/// Names of keys that have changed since they were copied, before they are copied again.
constexpr std::size_t kChangedMax = 16384;
/// So few changes are copied while the slots are nobody's. With more of them, and in so many
/// rounds, the copy is first brought nearer.
constexpr std::size_t kLastChanges = 256;
constexpr int kRoundsMax = 16;
constexpr std::size_t kRevisionsAtATime = 1024;
constexpr std::size_t kLeasesAtATime = 1024;

Error superseded() {
  return {ErrorCode::not_found, "the move was cancelled, or another attempt of it has begun"};
}
Error stopped() {
  return {ErrorCode::stopped, "this node stops, or does not lead any more"};
}

/// The Integer that a command returns; none: Nil.
Result<std::optional<std::uint64_t>> ask(MovingGroup& group, const Command& command) {
  auto reply = group.execute(command);
  if (!reply) return reply.error();
  if (std::holds_alternative<Nil>(reply.value())) return std::optional<std::uint64_t>();
  if (const auto* number = std::get_if<Integer>(&reply.value())) {
    return std::optional(static_cast<std::uint64_t>(number->value));
  }
  if (auto* error = std::get_if<ErrorReply>(&reply.value())) {
    const bool failed = error->kind == ErrorKind::store_failed;
    return Error{failed ? ErrorCode::timed_out : ErrorCode::in_use, std::move(error->text)};
  }
  return Error{ErrorCode::malformed, "a command that moves slots has another kind of result"};
}

}  // namespace

Result<void> drop_slot_keys(MovingGroup& group, const SlotSet& slots, std::uint32_t other,
                            std::uint64_t move, const std::function<bool()>& go_on) {
  if (auto newest = group.catch_up(); !newest) return newest;
  std::optional<std::string> after;
  do {
    if (!go_on()) return stopped();
    const auto some = group.store().slot_rows(slots, after, Load::revisions);
    if (!some) return some.error();
    const std::vector<Row>& rows = some.value().rows;
    for (std::size_t next = 0; next < rows.size();) {
      DropKeys drop{other, move, {}};
      std::size_t bytes = 0;
      while (next < rows.size() && drop.keys.size() < kCommandKeys && bytes < kCommandBytes) {
        bytes += rows[next].key.size();
        drop.keys.emplace_back(rows[next++].key);
      }
      if (const auto dropped = ask(group, drop); !dropped) return dropped.error();
    }
    after = some.value().reached;
  } while (after);
  return {};
}

SlotMove::SlotMove(MoveRoute route, std::vector<std::uint32_t> slots, std::function<bool()> go_on)
    : route_(route), slots_(std::move(slots)), go_on_(std::move(go_on)), set_(set_of(slots_)) {
  LEASEHOLD_ASSERT(!slots_.empty() && slots_.size() <= kCommandSlotsMax);
}

Result<void> SlotMove::run() {
  if (auto free = check_leases(); !free) return free;
  if (auto begun = begin(); !begun) return begun;
  const auto taken = expect();
  if (!taken) return taken.error();
  if (!taken.value()) {
    if (auto copied = copy(); !copied) return copied;
    if (auto frozen = freeze(); !frozen) return frozen;
    if (auto there = take(); !there) return there;
  }
  return leave();
}

/// FreezeMove says the same. This is before all keys have been copied for nothing.
Result<void> SlotMove::check_leases() const {
  const Store& store = route_.from.store();
  grant::LeaseId after(0);
  for (;;) {
    const auto some = store.leases_after(after, kLeasesAtATime);
    if (!some) return some.error();
    for (const grant::LeaseTable::Lease& lease : some.value()) {
      // Those of keys go with the keys, and are behind all others.
      if (grant::is_of_key(lease.id)) return {};
      after = lease.id;
      if (!lease.name.empty() && set_.test(slot_of(lease.name))) {
        return Error{ErrorCode::in_use, fmt::format("slot {} has the name of lease {}",
                                                    slot_of(lease.name), lease.id.value())};
      }
      const auto found = store.find_lease(lease.id, "");
      if (!found) return found.error();
      if (!found.value()) continue;
      for (const std::string& key : found.value()->keys) {
        if (!set_.test(slot_of(key))) continue;
        return Error{ErrorCode::in_use,
                     fmt::format("slot {} has a key of lease {}", slot_of(key), lease.id.value())};
      }
    }
    if (some.value().size() < kLeasesAtATime) return {};
  }
}

/// The number of the move that has these slots. The list that they are from may be older, and may
/// show a part of a move that is being written.
Result<std::uint64_t> SlotMove::newest() const {
  if (auto newest = route_.from.catch_up(); !newest) return newest.error();
  const auto records = route_.from.store().slots().list();
  const auto at = records->find(slots_.front());
  if (at == records->end() || at->second.other != route_.to_number) return superseded();
  return at->second.move;
}

Result<void> SlotMove::begin() {
  const auto earlier = newest();
  if (!earlier) return earlier.error();
  const auto begun = ask(route_.from, RetryMove{earlier.value(), slots_});
  if (!begun) return begun.error();
  if (!begun.value()) return superseded();
  move_ = *begun.value();
  if (auto newest = route_.from.catch_up(); !newest) return newest;
  const auto records = route_.from.store().slots().list();
  for (const std::uint32_t slot : slots_) {
    const auto at = records->find(slot);
    if (at == records->end() || at->second.move != move_) return superseded();
    frozen_ = at->second.phase == SlotPhase::frozen;
    expected_.push_back({slot, at->second.epoch + 1});
  }
  return {};
}

/// Whether the other group has taken them already.
Result<bool> SlotMove::expect() {
  constexpr std::uint64_t kTaken = 1;
  constexpr std::uint64_t kOthers = 2;
  const auto expected = ask(route_.to, ExpectSlots{route_.to_number, route_.groups,
                                                   route_.from_number, move_, expected_});
  if (!expected) return expected.error();
  if (!expected.value()) return superseded();
  if (*expected.value() == kOthers) {
    // Earlier attempts are void from here on, so what is there stays as it is.
    if (auto there = route_.to.catch_up(); !there) return there.error();
    held_.emplace(route_.to.store(), set_);
  }
  return *expected.value() == kTaken;
}

/// Of the keys of the slots, those that the other group does not have just so.
Result<std::vector<SlotMove::Key>> SlotMove::to_copy(SlotRows some) {
  std::vector<Key> keys;
  if (!held_) {
    keys.reserve(some.rows.size());
    for (Row& row : some.rows) keys.push_back({std::move(row.key), std::move(row.value)});
    return keys;
  }
  auto lacking = held_->lacking(std::move(some.rows), some.reached);
  if (!lacking) return lacking.error();
  for (auto& [key, value] : lacking.value()) keys.push_back({std::move(key), std::move(value)});
  return keys;
}

Result<void> SlotMove::copy() {
  const Store& store = route_.from.store();
  next_revision_ = store.events().figures().head + 1;
  std::optional<std::string> after;
  do {
    if (auto good = check(); !good) return good;
    auto some = store.slot_rows(set_, after, Load::whole);
    if (!some) return some.error();
    after = some.value().reached;
    const auto keys = to_copy(std::move(some).value());
    if (!keys) return keys.error();
    if (auto sent = send(keys.value()); !sent) return sent;
    if (auto noted = note_changes(after); !noted) return noted;
    if (changed_.size() <= kChangedMax) continue;
    if (auto sent = send_changes(); !sent) return sent;
  } while (after);
  if (auto fences = note_fences(); !fences) return fences;
  return frozen_ ? Result<void>() : copy_changes();
}

/// Until few are left.
Result<void> SlotMove::copy_changes() {
  for (int round = 0; changed_.size() > kLastChanges; ++round) {
    if (round == kRoundsMax) {
      return Error{ErrorCode::overloaded,
                   fmt::format("{} keys change while as many are copied", changed_.size())};
    }
    if (auto good = check(); !good) return good;
    if (auto sent = send_changes(); !sent) return sent;
    if (auto noted = note_changes(std::nullopt); !noted) return noted;
  }
  return {};
}

Result<void> SlotMove::freeze() {
  if (auto good = check(); !good) return good;
  // While the slots are nobody's, the other group should not be what is waited for.
  if (auto there = route_.to.catch_up(); !there) return there;
  const auto frozen = ask(route_.from, FreezeMove{move_});
  if (!frozen) return frozen.error();
  if (!frozen.value()) return superseded();
  frozen_at_ = *frozen.value();
  if (auto newest = route_.from.catch_up(); !newest) return newest;
  if (!frozen_) {
    if (auto noted = note_changes(std::nullopt); !noted) return noted;
    if (auto fences = note_fences(); !fences) return fences;
  }
  frozen_ = true;
  return send_changes();
}

Result<void> SlotMove::take() {
  const auto taken = ask(route_.to, TakeSlots{route_.from_number, move_, frozen_at_});
  if (!taken) return taken.error();
  if (!taken.value()) return superseded();
  if (*taken.value() == slots_.size()) return {};
  // To let go of the others would leave them to nobody.
  return Error{ErrorCode::malformed, fmt::format("the other group has taken {} of {} slots",
                                                 *taken.value(), slots_.size())};
}

Result<void> SlotMove::leave() {
  const auto left = ask(route_.from, LeaveSlots{move_});
  if (!left) return left.error();
  return {};
}

/// Whether to go on.
Result<void> SlotMove::check() const {
  if (!go_on_()) return stopped();
  const auto records = route_.from.store().slots().list();
  const auto at = records->find(slots_.front());
  if (at == records->end() || at->second.move != move_) return superseded();
  return {};
}

/// `copied_to`: what is behind it will be copied yet. None: all has been.
Result<void> SlotMove::note_changes(const std::optional<std::string>& copied_to) {
  // Since the attempt began.
  if (frozen_) return {};
  for (;;) {
    const EventHistory::Batch batch =
        route_.from.store().events().read(next_revision_, kRevisionsAtATime);
    if (batch.lost) {
      return Error{ErrorCode::overloaded,
                   "changes of keys were forgotten before they were copied (--events-bytes)"};
    }
    if (batch.revisions.empty()) return {};
    for (const Revision& revision : batch.revisions) {
      for (const Event& event : revision.events) {
        if (copied_to && event.key > *copied_to) continue;
        if (set_.test(slot_of(event.key))) changed_.emplace(event.key);
      }
    }
    next_revision_ = batch.revisions.back().number + 1;
  }
}

/// Notes the keys whose token the other group does not know. Tokens change also where no key does.
Result<void> SlotMove::note_fences() {
  if (route_.from.store().fences() == 0) return {};
  if (auto newest = route_.to.catch_up(); !newest) return newest;
  std::optional<std::string> after;
  do {
    if (!go_on_()) return stopped();
    const auto some = route_.from.store().slot_fences(set_, after);
    if (!some) return some.error();
    for (const auto& [key, token] : some.value().fences) {
      const auto there = route_.to.store().fence(key);
      if (!there) return there.error();
      if (token > there.value()) changed_.insert(key);
    }
    if (changed_.size() > kChangedMax) {
      if (auto sent = send_changes(); !sent) return sent;
    }
    after = some.value().reached;
  } while (after);
  return {};
}

Result<void> SlotMove::send_changes() {
  const Store& store = route_.from.store();
  std::vector<Key> keys;
  std::size_t bytes = 0;
  while (!changed_.empty()) {
    Key key;
    key.key = std::move(changed_.extract(changed_.begin()).value());
    auto value = store.get(key.key);
    if (!value) return value.error();
    key.value = std::move(value).value();
    const auto token = store.fence(key.key);
    if (!token) return token.error();
    key.token = token.value();
    bytes += key.key.size() + (key.value ? key.value->bytes.size() : 0);
    keys.push_back(std::move(key));
    if (bytes < kCommandBytes && !changed_.empty()) continue;
    if (auto sent = send(keys); !sent) return sent;
    keys.clear();
    bytes = 0;
  }
  return {};
}

/// They ascend.
Result<void> SlotMove::send(const std::vector<Key>& keys) {
  for (std::size_t next = 0; next < keys.size();) {
    if (!go_on_()) return stopped();
    ImportKeys import{route_.from_number, move_, {}};
    std::size_t bytes = 0;
    while (next < keys.size() && import.keys.size() < kCommandKeys) {
      const Key& key = keys[next];
      const std::size_t more = key.key.size() + (key.value ? key.value->bytes.size() : 0);
      if (bytes > 0 && bytes + more > kCommandBytes) break;
      bytes += more + 1;
      const auto as_it_is = moved(key);
      if (!as_it_is) return as_it_is.error();
      import.keys.push_back(as_it_is.value());
      ++next;
    }
    const auto imported = ask(route_.to, import);
    if (!imported) return imported.error();
    if (!imported.value()) return superseded();
    copied_ += import.keys.size();
  }
  return {};
}

/// A view into `key`.
Result<MovedKey> SlotMove::moved(const Key& key) const {
  MovedKey moved;
  moved.key = key.key;
  moved.token = key.token;
  if (!key.value) return moved;
  const Value& value = *key.value;
  moved.exists = true;
  moved.value = value.bytes.view();
  moved.create_revision = value.create_revision;
  moved.mod_revision = value.mod_revision;
  moved.version = value.version;
  if (value.lease == grant::LeaseId(0)) return moved;
  if (!grant::is_of_key(value.lease)) {
    return Error{ErrorCode::in_use, fmt::format("slot {} has a key of lease {}", slot_of(key.key),
                                                value.lease.value())};
  }
  const auto left = route_.from.time_left(value.lease);
  if (!left) return left.error();
  // Without its lease the key has ended since it was read, which is among the changes.
  moved.ttl = std::clamp(left.value().value_or(grant::kLeaseTtlMin), grant::kLeaseTtlMin,
                         grant::kLeaseTtlMax);
  return moved;
}

}  // namespace leasehold::kv
