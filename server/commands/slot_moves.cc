#include <leasehold/kv/command_level.h>
#include <leasehold/server/commands/slot_moves.h>
#include <leasehold/server/front/replies.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <variant>

namespace leasehold::server {
namespace {

/// Attempts of a driver that may come between.
constexpr int kTriesMax = 16;

struct GroupCommand {
  std::size_t group = 0;  ///< in ServedGroups::all()
  kv::Command command;
};

/// What came of one.
struct Outcome {
  std::int64_t number = 0;  ///< its result
  std::string problem;      ///< the text of an error, first word included; empty: there is none
};
using Outcomes = std::vector<Outcome>;

/// Without the type and the end of the line.
std::string text_of_error(const std::string& reply) {
  return reply.substr(1, reply.size() - 3);
}

Outcome outcome_of(const replica::ProposeResult& result) {
  std::string reply;
  switch (result.status) {
    case replica::ProposeStatus::committed: {
      const auto decoded = kv::decode_reply(result.result);
      const auto* integer = decoded ? std::get_if<kv::Integer>(&decoded.value()) : nullptr;
      if (integer != nullptr) return {integer->value, {}};
      append_encoded_reply(reply, result.result, Protocol::resp2, ReplyForm::plain, {}, nullptr);
      break;
    }
    case replica::ProposeStatus::dropped: append_dropped(reply, result); break;
    case replica::ProposeStatus::unknown:
      append_error(reply, "UNKNOWNOUTCOME the command may still be executed");
      break;
  }
  return {0, text_of_error(reply)};
}

/// Of commands that are under way.
struct Gathered {
  std::mutex mutex;
  Outcomes outcomes;
  std::size_t missing = 0;
  std::function<void(Outcomes)> done;

  /// The last one calls `done`.
  void put(std::size_t at, Outcome outcome) {
    {
      const std::lock_guard lock(mutex);
      outcomes[at] = std::move(outcome);
      if (--missing > 0) return;
    }
    done(std::move(outcomes));
  }
};

/// Proposes all of them, at least one, at once. `done` gets the outcomes in their order, on any
/// thread.
void propose_all(const Session::Context& context, const std::vector<GroupCommand>& commands,
                 std::function<void(Outcomes)> done) {
  const auto gathered = std::make_shared<Gathered>();
  gathered->outcomes.resize(commands.size());
  gathered->missing = commands.size();
  gathered->done = std::move(done);
  for (std::size_t i = 0; i < commands.size(); ++i) {
    node::Group& group = context.groups.all()[commands[i].group].group;
    auto encoded = kv::encode_command(commands[i].command);
    if (!encoded) {
      gathered->put(i, {0, "ERR " + encoded.error().message});
      continue;
    }
    const raft::FeatureLevel level = group.lease_view().level();
    if (auto low = kv::refusal_below(encoded.value().view(), level); !low.empty()) {
      // Many groups have the level from the beginning, which a new member has yet to learn.
      gathered->put(i, {0, "TRYAGAIN " + low});
      continue;
    }
    group.propose(std::move(encoded).value(), context.state.options.command_timeout,
                  [gathered, i](const replica::ProposeResult& result) {
                    gathered->put(i, outcome_of(result));
                  });
  }
}

/// Null: all is well. If one of several may be executed later, that is what counts.
const std::string* problem_in(const Outcomes& outcomes) {
  const std::string* found = nullptr;
  for (const Outcome& outcome : outcomes) {
    if (outcome.problem.empty()) continue;
    const bool unknown = outcome.problem.rfind("UNKNOWNOUTCOME", 0) == 0;
    if (unknown) return &outcome.problem;
    if (found == nullptr) found = &outcome.problem;
  }
  return found;
}

/// `all_the_same` says of how many slots something is true in spite of the problem.
std::string error_reply(const std::string& problem, const char* all_the_same, std::size_t slots) {
  std::string reply;
  append_error(reply,
               slots == 0 ? problem : fmt::format("{}; {}: {}", problem, all_the_same, slots));
  return reply;
}

std::string number_reply(std::size_t number) {
  std::string reply;
  append_integer(reply, static_cast<std::int64_t>(number));
  return reply;
}

/// The records of all groups, as they are now.
class Records {
 public:
  explicit Records(const ServedGroups& groups) {
    for (const ServedGroup& group : groups.all()) maps_.push_back(group.store.slots().list());
  }
  /// Null: there is none.
  const kv::SlotRecord* find(std::size_t group, std::uint32_t slot) const {
    const auto at = maps_[group]->find(slot);
    return at == maps_[group]->end() ? nullptr : &at->second;
  }

 private:
  std::vector<std::shared_ptr<const kv::SlotMap>> maps_;
};

bool is_on_its_way(const kv::SlotRecord* record, std::size_t to) {
  return record != nullptr && record->other == to + 1 &&
         (record->phase == kv::SlotPhase::copying || record->phase == kv::SlotPhase::frozen);
}

/// Moves are for a node that sees all groups concerned.
std::string no_replica_text(const Session::Context& context, std::size_t group) {
  const ServedGroup& elsewhere = context.groups.all()[group];
  const auto& addresses = context.state.options.client_addresses;
  const auto target = addresses.find(elsewhere.place->target());
  return fmt::format(
      "ERR this node has no replica of group {}: ask one that has a replica of each group that is "
      "concerned{}",
      group + 1,
      target == addresses.end() ? std::string()
                                : fmt::format("; node {} at {} has one of this group",
                                              target->first.value(), target->second));
}

/// Waits until this node has applied all that was committed before about some slots: in the groups
/// that have them, or that may have taken them from there.
class CatchUp : public std::enable_shared_from_this<CatchUp> {
 public:
  /// `done` gets the text of an error, empty if there is none, on the background thread or, where
  /// no group has to be asked, inside start().
  CatchUp(const Session::Context& context, std::vector<std::uint32_t> slots,
          std::function<void(std::string)> done)
      : context_(context), slots_(std::move(slots)), done_(std::move(done)) {}

  void start() {
    std::set<std::size_t> groups;
    const Records records(context_.groups);
    for (const std::uint32_t slot : slots_) {
      const std::size_t group = context_.groups.number_of_slot(slot);
      if (!context_.groups.all()[group].here()) {
        return done_(no_replica_text(context_, group));
      }
      if (newest_.count(group) == 0) groups.insert(group);
      const kv::SlotRecord* const record = records.find(group, slot);
      if (record == nullptr || record->phase != kv::SlotPhase::frozen) continue;
      const std::size_t other = record->other - 1;
      // Of an earlier number of groups, if at all: such a group is not here.
      if (other >= context_.groups.all().size() || !context_.groups.all()[other].here()) continue;
      if (newest_.count(other) == 0) groups.insert(other);
    }
    if (groups.empty()) return done_({});
    newest_.insert(groups.begin(), groups.end());
    missing_ = groups.size();
    const auto mode =
        context_.state.options.lease_reads ? raft::ReadMode::lease : raft::ReadMode::quorum;
    for (const std::size_t group : groups) {
      context_.groups.all()[group].group.read(
          mode, context_.state.options.command_timeout,
          [self = shared_from_this()](const replica::ReadResult& result) { self->put(result); });
    }
  }

 private:
  void put(const replica::ReadResult& result) {
    {
      const std::lock_guard lock(mutex_);
      if (!result.index) {
        std::string reply;
        append_not_executed(reply, result.overloaded, result.leader);
        problem_ = text_of_error(reply);
      }
      if (--missing_ > 0) return;
    }
    context_.background->post([self = shared_from_this()] {
      self->problem_.empty() ? self->start() : self->done_(self->problem_);
    });
  }

  const Session::Context context_;
  const std::vector<std::uint32_t> slots_;
  const std::function<void(std::string)> done_;
  std::set<std::size_t> newest_;  ///< groups that were asked
  std::mutex mutex_;
  std::size_t missing_ = 0;  ///< under mutex_, while reads are under way
  std::string problem_;      ///< likewise
};

class Cancellation : public std::enable_shared_from_this<Cancellation> {
 public:
  Cancellation(const Session::Context& context, std::vector<std::uint32_t> slots,
               std::function<void(std::string)> done)
      : context_(context), slots_(std::move(slots)), done_(std::move(done)) {}

  /// On the background thread, when this node has caught up.
  void start() {
    moves_.clear();
    const Records records(context_.groups);
    for (const std::uint32_t slot : slots_) {
      const std::size_t group = context_.groups.number_of_slot(slot);
      const kv::SlotRecord* const record = records.find(group, slot);
      if (record == nullptr) continue;
      if (record->phase == kv::SlotPhase::copying) moves_[{group, record->move}].push_back(slot);
      if (record->phase == kv::SlotPhase::frozen && !frozen_) frozen_ = slot;
    }
    if (moves_.empty()) return finish();
    if (++tries_ > kTriesMax) {
      return fail("TRYAGAIN the move of these slots begins again all the time; it goes on");
    }
    std::vector<GroupCommand> commands;
    for (const auto& [move, slots] : moves_) {
      commands.push_back({move.first, kv::CancelMove{move.second}});
    }
    propose_all(context_, commands, [self = shared_from_this()](Outcomes outcomes) {
      // It may be the thread that applies, which must not look at thousands of slots.
      self->context_.background->post(
          [self, outcomes = std::move(outcomes)] { self->go_on(outcomes); });
    });
  }

 private:
  void go_on(const Outcomes& outcomes) {
    slots_.clear();
    std::size_t at = 0;
    for (const auto& [move, slots] : moves_) {
      const Outcome& outcome = outcomes[at++];
      stay_ += static_cast<std::size_t>(std::max(outcome.number, std::int64_t{0}));
      // There is no such move: it ended, was frozen, or has another number.
      if (outcome.problem.empty() && outcome.number == 0) {
        slots_.insert(slots_.end(), slots.begin(), slots.end());
      }
    }
    if (const std::string* problem = problem_in(outcomes)) return fail(*problem);
    start();
  }

  void finish() {
    if (!frozen_) return done_(number_reply(stay_));
    fail(
        fmt::format("ERR slot {} is frozen: the other group may have it already, so it only goes "
                    "there",
                    *frozen_));
  }

  void fail(const std::string& problem) {
    done_(error_reply(problem, "slots that stay all the same", stay_));
  }

  const Session::Context context_;
  std::vector<std::uint32_t> slots_;  ///< whose moves are to be looked for
  const std::function<void(std::string)> done_;
  /// By group and number, with those of `slots_` that brought them here.
  std::map<std::pair<std::size_t, std::uint64_t>, std::vector<std::uint32_t>> moves_;
  std::size_t stay_ = 0;
  std::optional<std::uint32_t> frozen_;  ///< the first one that was seen
  int tries_ = 0;
};

void begin_moves(const Session::Context& context, const std::vector<std::uint32_t>& slots,
                 std::size_t to, const std::function<void(std::string)>& done) {
  const Records records(context.groups);
  std::map<std::size_t, std::vector<std::uint32_t>> of_group;
  std::size_t on_their_way = 0;
  for (const std::uint32_t slot : slots) {
    const std::size_t group = context.groups.number_of_slot(slot);
    if (group == to) continue;
    // To begin it again would begin the copying again.
    if (is_on_its_way(records.find(group, slot), to)) {
      ++on_their_way;
    } else {
      of_group[group].push_back(slot);
    }
  }
  if (of_group.empty()) return done(number_reply(on_their_way));
  const auto groups = static_cast<std::uint32_t>(context.groups.all().size());
  std::vector<GroupCommand> commands;
  std::vector<std::size_t> counts;
  for (const auto& [group, own] : of_group) {
    for (std::size_t from = 0; from < own.size(); from += kv::kCommandSlotsMax) {
      const std::size_t end = std::min(from + kv::kCommandSlotsMax, own.size());
      kv::BeginMove begin;
      begin.group = static_cast<std::uint32_t>(group + 1);
      begin.groups = groups;
      begin.to = static_cast<std::uint32_t>(to + 1);
      begin.slots.assign(own.begin() + static_cast<std::ptrdiff_t>(from),
                         own.begin() + static_cast<std::ptrdiff_t>(end));
      commands.push_back({group, std::move(begin)});
      counts.push_back(end - from);
    }
  }
  propose_all(context, commands, [on_their_way, counts, done](const Outcomes& outcomes) {
    std::size_t moving = on_their_way;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (outcomes[i].problem.empty()) moving += counts[i];
    }
    const std::string* const problem = problem_in(outcomes);
    done(problem == nullptr
             ? number_reply(moving)
             : error_reply(*problem, "slots that are on their way all the same", moving));
  });
}

}  // namespace

void move_slots(const Session::Context& context, const std::vector<std::uint32_t>& slots,
                std::size_t to, std::function<void(std::string)> done) {
  if (!context.groups.all()[to].here()) {
    return done(error_reply(no_replica_text(context, to), "", 0));
  }
  const auto begin = [context, slots, to, done = std::move(done)](const std::string& problem) {
    problem.empty() ? begin_moves(context, slots, to, done) : done(error_reply(problem, "", 0));
  };
  std::make_shared<CatchUp>(context, slots, begin)->start();
}

void cancel_moves(const Session::Context& context, const std::vector<std::uint32_t>& slots,
                  std::function<void(std::string)> done) {
  const auto begin = [context, slots, done = std::move(done)](const std::string& problem) {
    problem.empty() ? std::make_shared<Cancellation>(context, slots, done)->start()
                    : done(error_reply(problem, "", 0));
  };
  std::make_shared<CatchUp>(context, slots, begin)->start();
}

}  // namespace leasehold::server
