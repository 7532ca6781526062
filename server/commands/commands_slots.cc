// LEASEHOLD SLOTS: which group has which slots, and moves of them from one group to another.
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/commands/map_reply.h>
#include <leasehold/server/commands/slot_moves.h>
#include <leasehold/server/front/replies.h>
#include <leasehold/server/front/slot_words.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

namespace leasehold::server {
namespace {

constexpr const char* kSlotForms =
    "ERR expected LEASEHOLD SLOTS, LIST, MOVE slot|first-last ... TO group, or CANCEL "
    "slot|first-last ...";

/// Consecutive slots of one move.
struct MovingRun {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  kv::SlotPhase phase = kv::SlotPhase::copying;
  std::size_t from = 0;  ///< from 1 on, as `to`
  std::size_t to = 0;
  std::uint64_t move = 0;

  bool goes_on_with(const MovingRun& next) const {
    return next.first == last + 1 &&
           std::tie(from, to, phase, move) == std::tie(next.from, next.to, next.phase, next.move);
  }
};
using MovingRuns = std::vector<MovingRun>;

/// Null: such a slot does not move.
const char* phase_name(kv::SlotPhase phase) {
  switch (phase) {
    case kv::SlotPhase::copying: return "copying";
    case kv::SlotPhase::frozen: return "frozen";
    case kv::SlotPhase::left: return "left";
    case kv::SlotPhase::arriving: return "arriving";
    case kv::SlotPhase::owned:
    case kv::SlotPhase::gone: break;
  }
  return nullptr;
}

/// Whether a group says that the slot goes to another one: 0 is the first.
bool sends(const kv::SlotMap& records, std::uint32_t slot, std::size_t to) {
  const auto at = records.find(slot);
  return at != records.end() && at->second.phase != kv::SlotPhase::arriving &&
         phase_name(at->second.phase) != nullptr && at->second.other == to + 1;
}

/// Ascending by the group that has had them.
MovingRuns moving_runs(const ServedGroups& groups) {
  std::vector<std::shared_ptr<const kv::SlotMap>> maps;
  for (const ServedGroup& group : groups.all()) maps.push_back(group.store.slots().list());
  MovingRuns single;
  for (std::size_t group = 0; group < maps.size(); ++group) {
    for (const auto& [slot, record] : *maps[group]) {
      if (phase_name(record.phase) == nullptr) continue;
      MovingRun one{slot, slot, record.phase, group + 1, record.other, record.move};
      if (record.phase == kv::SlotPhase::arriving) {
        std::swap(one.from, one.to);
        const std::size_t source = std::size_t{record.other} - 1;
        if (source < maps.size() && sends(*maps[source], slot, group)) continue;
      }
      single.push_back(one);
    }
  }
  std::stable_sort(single.begin(), single.end(), [](const MovingRun& a, const MovingRun& b) {
    return std::tie(a.from, a.first) < std::tie(b.from, b.first);
  });
  MovingRuns runs;
  for (const MovingRun& one : single) {
    if (!runs.empty() && runs.back().goes_on_with(one)) {
      runs.back().last = one.last;
    } else {
      runs.push_back(one);
    }
  }
  return runs;
}

void show_moves(const Session& session, std::string& out) {
  const MovingRuns runs = moving_runs(session.context().groups);
  append_array(out, runs.size());
  for (const MovingRun& run : runs) {
    MapReply one;
    one.add("first", run.first);
    one.add("last", run.last);
    one.add("phase", phase_name(run.phase));
    one.add("from", static_cast<std::int64_t>(run.from));
    one.add("to", static_cast<std::int64_t>(run.to));
    one.add("move", static_cast<std::int64_t>(run.move));
    one.finish(out, session.protocol);
  }
}

void show_owners(const Session& session, std::string& out) {
  const ServedGroups& groups = session.context().groups;
  std::string body;
  std::size_t count = 0;
  for (std::uint32_t first = 0; first < kv::kSlots; ++count) {
    const std::size_t group = groups.number_of_slot(first);
    std::uint32_t behind = first + 1;
    while (behind < kv::kSlots && groups.number_of_slot(behind) == group) ++behind;
    MapReply one;
    one.add("first", first);
    one.add("last", behind - 1);
    one.add("group", static_cast<std::int64_t>(group + 1));
    one.finish(body, session.protocol);
    first = behind;
  }
  append_array(out, count);
  out.append(body);
}

/// Of the words from the fourth one to `end`. False: it has refused the command.
bool take_slots(Session& session, const Arguments& args, Arguments::const_iterator end,
                std::vector<std::uint32_t>& slots, std::string& out) {
  auto parsed = parse_slots(Arguments(args.begin() + 3, end));
  if (!parsed) {
    session.refuse(out, "ERR " + parsed.error().message);
    return false;
  }
  // Each group decides about its own slots, by a state that has to be right.
  if (session.refuse_when_draining(out, true)) return false;
  if (!session.context().groups.many()) {
    session.refuse(out, "ERR this server has one group, which has all slots");
    return false;
  }
  slots = std::move(parsed).value();
  return true;
}

void move(Session& session, const Arguments& args, std::string& out) {
  std::vector<std::uint32_t> slots;
  if (!take_slots(session, args, args.end() - 2, slots, out)) return;
  const std::size_t groups = session.context().groups.all().size();
  const auto to = parse_integer(args.back());
  if (!to || *to < 1 || static_cast<std::uint64_t>(*to) > groups) {
    return session.refuse(out,
                          fmt::format("ERR there is no group {}: expected a number from 1 to {}",
                                      quoted(args.back()), groups));
  }
  move_slots(session.context(), slots, static_cast<std::size_t>(*to) - 1, session.answer_later());
}

void cancel(Session& session, const Arguments& args, std::string& out) {
  std::vector<std::uint32_t> slots;
  if (!take_slots(session, args, args.end(), slots, out)) return;
  cancel_moves(session.context(), slots, session.answer_later());
}

}  // namespace

void run_leasehold_slots(Session& session, const Arguments& args, std::string& out) {
  const bool lists = args.size() == 3 && equals_ignoring_case(args[2], "list");
  if (args.size() == 2 || lists) {
    const ServerState& state = session.context().state;
    if (state.options.witness) return session.refuse(out, witness_refusal(state));
    return lists ? show_owners(session, out) : show_moves(session, out);
  }
  if (args.size() > 3 && equals_ignoring_case(args[2], "cancel")) return cancel(session, args, out);
  const bool moves = args.size() > 5 && equals_ignoring_case(args[2], "move") &&
                     equals_ignoring_case(args[args.size() - 2], "to");
  if (!moves) return session.refuse(out, kSlotForms);
  move(session, args, out);
}

}  // namespace leasehold::server
