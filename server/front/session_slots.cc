// Commands whose slot is on its way to another group: they wait, and go where it is then.
#include <leasehold/kv/reply.h>
#include <leasehold/server/front/lease_word.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/replies.h>
#include <leasehold/server/front/session.h>
#include <leasehold/server/front/slot_wait.h>
#include <leasehold/server/front/words.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace leasehold::server {
namespace {

struct Movable {
  bool operator()(const kv::Set& set) const { return set.lease == grant::LeaseId(0); }
  bool operator()(const kv::Del&) const { return true; }
  bool operator()(const kv::IncrBy&) const { return true; }
  bool operator()(const kv::IncrByFloat&) const { return true; }
  bool operator()(const kv::Append&) const { return true; }
  bool operator()(const kv::SetRange&) const { return true; }
  bool operator()(const kv::SetBit&) const { return true; }
  bool operator()(const kv::GetDel&) const { return true; }
  bool operator()(const kv::MSet&) const { return true; }
  bool operator()(const kv::Rename&) const { return true; }
  bool operator()(const kv::Copy& copy) const { return copy.seen.stamp == 0; }
  bool operator()(const kv::DelEqual&) const { return true; }
  bool operator()(const kv::ExpireKey& expire) const { return !expire.looks_at_time(); }
  template <class Other>
  bool operator()(const Other&) const {
    return false;
  }
};

constexpr std::string_view kOnce = "leasehold|once";

/// That gave it its id; null: none of them.
const ServedGroup* group_of_session(const ServedGroups& groups, std::uint64_t id) {
  const std::uint64_t number = (id - 1) / kv::kIdsOfGroup;
  return number < groups.all().size() ? &groups.all()[static_cast<std::size_t>(number)] : nullptr;
}

/// Of the keys of the command that is to be executed once.
std::optional<std::uint32_t> slot_of_carried(const CommandTable& commands, const Arguments& args) {
  const std::ptrdiff_t before = equals_ignoring_case(args[4], "answered") ? 6 : 4;
  if (static_cast<std::ptrdiff_t>(args.size()) <= before) return std::nullopt;
  const Arguments carried(args.begin() + before, args.end());
  const CommandSpec* const spec = commands.find(carried);
  return spec == nullptr ? std::nullopt : slot_in(commands.uses_of(*spec, carried));
}

/// What decides to which group a command goes besides the slot of its keys.
struct Named {
  const ServedGroup* group;
  std::uint32_t slot;
};

/// By the session in which the command is to be executed once.
std::optional<Named> named_by_session(const ServedGroups& groups, const CommandTable& commands,
                                      const Multi& multi, const Arguments& args) {
  const auto id = parse_integer(args[2]);
  const auto slot = multi.open() ? multi.slot() : slot_of_carried(commands, args);
  if (!id || *id < 1 || !slot) return std::nullopt;
  const ServedGroup* const group = group_of_session(groups, static_cast<std::uint64_t>(*id));
  return group == nullptr ? std::nullopt : std::optional<Named>({group, *slot});
}

/// By the id of a lease for the key: it is of the selected group.
std::optional<Named> named_by_lease(const ServedGroup& selected, const CommandTable& commands,
                                    const CommandSpec& spec, const Arguments& args) {
  // To form the operation of each write would cost too much.
  const bool may_attach = (spec.name == "set" && args.size() >= 5) || spec.name == "setseq" ||
                          spec.name == "lease.attach";
  if (!may_attach) return std::nullopt;
  kv::Operation operation;
  if (!spec.make(args, operation).empty() || !attaches_by_id(operation)) return std::nullopt;
  const auto slot = slot_in(commands.uses_of(spec, args));
  return slot ? std::optional<Named>({&selected, *slot}) : std::nullopt;
}

/// Whether the slot has moved to the group or from it, as its replica here knows.
bool has_moved(const ServedGroup& group, std::uint32_t slot) {
  return group.store.slots().list()->count(slot) > 0;
}

}  // namespace

bool is_movable(const kv::Operation& operation) {
  return std::visit(Movable(), operation);
}

const char* lease_elsewhere(bool unseen) {
  if (unseen) {
    return "TRYAGAIN this node could not learn in time whether the slot of the key has moved to "
           "the group of the lease; the command was not executed, send it again";
  }
  return "CROSSSLOT the id of a lease is of the group that the connection has selected, and the "
         "key is of another one: send LEASEHOLD GROUP KEY with the key first, then take the lease";
}

bool is_elsewhere(const Place& place, const Bytes& result) {
  if (place.command.empty() || place.group->store.slots().changes() == kv::Slots::kNoChanges) {
    return false;
  }
  const auto reply = kv::decode_reply(result);
  const auto* error = reply ? std::get_if<kv::ErrorReply>(&reply.value()) : nullptr;
  return error != nullptr && error->kind == kv::ErrorKind::moved;
}

bool is_of_old_slot(const Place& place, const Bytes& result) {
  const kv::Slots& slots = place.group->store.slots();
  if (!place.slot || slots.changes() == kv::Slots::kNoChanges) return false;
  // What was executed once is answered as it was.
  if (place.spec != nullptr && place.spec->name == kOnce) return false;
  const auto records = slots.list();
  const auto at = records->find(*place.slot);
  if (at == records->end() || kv::serves(&at->second)) return false;
  const auto reply = kv::decode_reply(result);
  if (!reply) return false;
  if (const auto* error = std::get_if<kv::ErrorReply>(&reply.value())) {
    return error->kind == kv::ErrorKind::no_lease;
  }
  // Of LEASE.RENEW, for each name.
  const auto* array = std::get_if<kv::ArrayReply>(&reply.value());
  return array != nullptr &&
         std::any_of(array->items.begin(), array->items.end(), [](const Bytes& item) {
           const auto one = kv::decode_reply(item);
           return one && std::holds_alternative<kv::Nil>(one.value());
         });
}

bool has_left_session(const Place& place, const Bytes& result, const ServedGroups& groups) {
  if (!place.slot || place.spec == nullptr || place.spec->name != kOnce) return false;
  const auto reply = kv::decode_reply(result);
  const auto* error = reply ? std::get_if<kv::ErrorReply>(&reply.value()) : nullptr;
  if (error == nullptr) return false;
  if (error->kind == kv::ErrorKind::slot_left) return true;
  return error->kind == kv::ErrorKind::moved && place.group != &groups.of_slot(*place.slot);
}

bool Session::go_to_session(std::uint64_t id) {
  const ServedGroups& groups = context_.groups;
  const std::optional<std::uint32_t> slot = multi_.open() ? multi_.slot() : slot_;
  slot_.reset();
  // Leases that a transaction names by their ids are of the selected group.
  if (!slot || multi_.in_selected()) return false;
  const ServedGroup* const group = group_of_session(groups, id);
  if (group == nullptr || !has_moved(*group, *slot)) return false;
  group_ = group;
  slot_ = slot;
  return true;
}

void Session::submit_write(std::uint64_t number, Bytes command, bool repeatable) {
  node::CallOptions options(context_.state.options.command_timeout);
  options.repeatable = repeatable;
  options.trace = CommandTrace::of(place(number).span);
  place(number).group->group.propose(
      std::move(command), options,
      [weak = weak_from_this(), &executor = *context_.executor,
       number](replica::ProposeResult result) mutable {
        executor.post([weak = std::move(weak), number, result = std::move(result)] {
          if (const auto self = weak.lock()) self->finish_write(number, result);
        });
      });
}

/// A write of the slot that was proposed where the slot was may yet come where it is now.
bool Session::is_behind_elsewhere(std::uint32_t slot) const {
  const ServedGroup* const group = &context_.groups.of_slot(slot);
  return std::any_of(line_.begin(), line_.end(), [&](const Place& one) {
    return one.kind == PlaceKind::write && one.state == PlaceState::waiting && one.slot == slot &&
           one.group != group;
  });
}

bool Session::must_wait_for_slot(const CommandSpec& spec, const Arguments& args) {
  if (must_see_moves(spec, args)) return true;
  SlotRoutes& routes = context_.groups.routes();
  if (writes_under_way_ == 0) routes_ = routes.version();
  const bool changed = routes_ != routes.version();
  if ((routes.all_open() && !changed) || slot_waited_ || context_.state.draining ||
      spec.effect == CommandEffect::none || !arity_fits(spec, args.size())) {
    return false;
  }
  std::optional<std::uint32_t> slot;
  if (!multi_.open()) {
    slot = slot_in(context_.state.commands.uses_of(spec, args));
  } else if (spec.in_multi == InMulti::run) {
    slot = multi_.slot();
  }
  if (!slot) return false;
  if (routes.is_open(*slot)) return changed && is_behind_elsewhere(*slot);
  waits_for_slot_ = true;
  routes.wait(*slot, coarse_now() + context_.state.options.command_timeout,
              [weak = weak_from_this(), &executor = *context_.executor](bool open) {
                executor.post([weak, open] {
                  const auto self = weak.lock();
                  if (!self) return;
                  self->waits_for_slot_ = false;
                  self->slot_waited_ = !open;
                  self->on_progress_();
                });
              });
  return true;
}

// A node that has not applied the move of a slot yet would take a session or a lease for one of a
// group that has nothing to do with the key.
bool Session::must_see_moves(const CommandSpec& spec, const Arguments& args) {
  const ServedGroups& groups = context_.groups;
  if (!groups.many() || moves_seen_ || context_.state.draining || !arity_fits(spec, args.size())) {
    return false;
  }
  const CommandTable& commands = context_.state.commands;
  const auto named = spec.name == kOnce ? named_by_session(groups, commands, multi_, args)
                                        : named_by_lease(*selected_, commands, spec, args);
  if (!named) return false;
  const ServedGroup* const group = named->group;
  if (group == &groups.of_slot(named->slot) || has_moved(*group, named->slot)) return false;
  if (!group->here()) return false;  // a replica that is no member learns nothing
  waits_for_slot_ = true;
  const bool by_lease = context_.state.options.lease_reads;
  group->group.read(
      by_lease ? raft::ReadMode::lease : raft::ReadMode::quorum,
      context_.state.options.command_timeout,
      [weak = weak_from_this(), &executor = *context_.executor](const replica::ReadResult& result) {
        executor.post([weak, seen = result.index.has_value()] {
          const auto self = weak.lock();
          if (!self) return;
          self->waits_for_slot_ = false;
          self->moves_seen_ = seen;
          self->on_progress_();
        });
      });
  return true;
}

void Session::wait_for_slot(std::uint64_t number) {
  Place& waiting = place(number);
  waiting.state = PlaceState::waiting;
  context_.groups.routes().wait(
      *waiting.slot, waiting.begun + context_.state.options.command_timeout,
      [weak = weak_from_this(), &executor = *context_.executor, number](bool open) {
        executor.post([weak, number, open] {
          if (const auto self = weak.lock()) self->go_on(number, open);
        });
      });
}

void Session::go_on(std::uint64_t number, bool open) {
  Place& waited = place(number);
  std::string refusal;
  if (!open || coarse_now() >= waited.begun + context_.state.options.command_timeout) {
    refuse(refusal, kSlotMoves);
    fill(number, std::move(refusal));
    return on_progress_();
  }
  group_ = waited.group = &context_.groups.of_slot(*waited.slot);
  if (const std::string away = away_text(waited.slot); !away.empty()) {
    refuse(refusal, away);
    fill(number, std::move(refusal));
  } else if (refuse_distrusted(refusal)) {
    fill(number, std::move(refusal));
  } else if (waited.kind == PlaceKind::write) {
    submit_write(number, waited.command, false);
  } else {
    // This node may know the other group's state of long ago, without the slot.
    waited.policy.stale_bound.reset();
    enter(number, judge_read(*waited.spec, waited.policy));
    submit_reads();
  }
  on_progress_();
}

}  // namespace leasehold::server
