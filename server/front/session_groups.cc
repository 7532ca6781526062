// Which group a command goes to.
#include <leasehold/server/front/replies.h>
#include <leasehold/server/front/session.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

namespace leasehold::server {
namespace {

constexpr const char* kSelectedDiffers =
    "CROSSSLOT a command without keys is of the group that the connection has selected, and this "
    "transaction has keys of another one: send LEASEHOLD GROUP KEY with such a key before MULTI";

constexpr const char* kNamesDiffer =
    "CROSSSLOT the slot of a lease's name has gone to another group than the connection has "
    "selected: name the leases of each slot in a command of their own";

constexpr const char* kScanHasLeft =
    "ERR the group at which the cursor stands has left this node: begin again with 0";

constexpr const char* kSlotsDiffer = "CROSSSLOT Keys in request don't hash to the same slot";
constexpr const char* kPrefixOfMany =
    "CROSSSLOT the keys with this prefix are of many slots; a prefix with a {tag} is of one";

/// None: the keys that begin so are of different slots.
std::optional<std::uint32_t> slot_of_prefix(std::string_view prefix) {
  const std::size_t open = prefix.find('{');
  if (open == std::string_view::npos) return std::nullopt;
  const std::size_t close = prefix.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return std::nullopt;
  return kv::slot_of(prefix);
}

bool has_slot(const ServedGroup& group, std::uint32_t slot) {
  const kv::Slots& slots = group.store.slots();
  if (slots.changes() == kv::Slots::kNoChanges) return true;
  const auto records = slots.list();
  const auto at = records->find(slot);
  return at == records->end() || kv::serves(&at->second);
}

/// Whether a command without keys is about what the selected group has stored.
bool serves_selected(const CommandSpec& spec) {
  if (spec.in_each_group) return false;
  return spec.effect == CommandEffect::read || spec.effect == CommandEffect::write ||
         spec.name == "leasehold|session" || spec.name == "leasehold|backup";
}

/// How many leases a command names, by their ids or names.
std::size_t leases_of(const CommandSpec& spec, const Arguments& args) {
  return spec.name == "lease.renew" ? args.size() - 1 : 1;
}

/// A client looks for the name of a lease in the group that it has selected. Where that group had
/// the slot of the name and has let it go, the name is where the slot is.
struct NamedLeases {
  std::size_t count = 0;
  std::optional<std::uint32_t> slot;  ///< of all of them; none: they are of different slots
  bool gone = false;                  ///< one of them is not in the selected group

  void add(std::string_view name, const ServedGroup& selected) {
    const std::uint32_t of = kv::slot_of(name);
    if (count++ == 0) slot = of;
    if (slot != of) slot.reset();
    gone = gone || !has_slot(selected, of);
  }
};

}  // namespace

std::string Session::away_text(std::optional<std::uint32_t> slot) const {
  if (group_->here()) return {};
  const ServedGroups& groups = context_.groups;
  const std::size_t number = groups.number_of(*group_);
  // A command without a key: any slot of the group leads to a node that has it.
  for (std::uint32_t at = 0; !slot && at < kv::kSlots; ++at) {
    if (groups.number_of_slot(at) == number) slot = at;
  }
  return moved_text(*group_->place, number + 1, slot.value_or(0),
                    context_.state.options.client_addresses);
}

std::string Session::find_group(const CommandSpec& spec, const Arguments& args) {
  const ServedGroups& groups = context_.groups;
  group_ = selected_;
  slot_.reset();
  if (!groups.many() || spec.effect == CommandEffect::alone) return {};
  if (spec.group_of != nullptr) {
    group_ = &groups.all()[spec.group_of(context_.state, args, groups)];
    if (group_->here()) return {};
    return spec.name == "scan" ? kScanHasLeft : away_text({});
  }
  // A transaction is one command, of one group.
  const bool together = multi_.open() || is_of_transaction(spec);
  std::optional<std::uint32_t> slot = together ? multi_.slot() : std::nullopt;
  bool has_keys = false;
  NamedLeases named;
  for (const KeyUse& use : context_.state.commands.uses_of(spec, args)) {
    std::optional<std::uint32_t> of;
    if (use.kind == KeyUse::Kind::key) {
      of = kv::slot_of(use.text);
    } else if (use.kind == KeyUse::Kind::prefix) {
      of = slot_of_prefix(use.text);
      if (!of) return kPrefixOfMany;
    } else {
      if (use.kind == KeyUse::Kind::lease_name && !together) named.add(use.text, *selected_);
      continue;
    }
    if (slot && slot != of) return kSlotsDiffer;
    slot = of;
    has_keys = true;
  }
  if (named.gone) {
    if (!named.slot || named.count != leases_of(spec, args)) return kNamesDiffer;
    slot = named.slot;
  }
  if (slot) group_ = &groups.of_slot(*slot);
  if (!together) {
    if (!slot_waited_) slot_ = slot ? slot : named.slot;
    return slot || serves_selected(spec) ? away_text(slot) : std::string();
  }
  // Leases have their ids in each group: one of another group is another lease.
  const bool of_selected =
      multi_.in_selected() || (multi_.open() && spec.in_multi == InMulti::queued && !has_keys);
  if (of_selected && group_ != selected_) return kSelectedDiffers;
  if (slot) multi_.stay_in(*slot);
  if (of_selected) multi_.stay_in_selected();
  return has_keys || of_selected ? away_text(slot) : std::string();
}

bool Session::refuse_distrusted(std::string& out, bool in_each_group) {
  const std::vector<ServedGroup>& groups = context_.groups.all();
  const auto refuses = [](const ServedGroup& group) {
    return group.health.refuses.load(std::memory_order_relaxed);
  };
  const ServedGroup* found = nullptr;
  if (refuses(*group_)) {
    found = group_;
  } else if (refuses(groups.front())) {
    // It has the users, whose rights count in every group.
    found = &groups.front();
  } else if (in_each_group) {
    const auto at = std::find_if(groups.begin(), groups.end(), refuses);
    if (at != groups.end()) found = &*at;
  }
  if (found == nullptr) return false;
  const std::string which =
      groups.size() == 1 ? "" : fmt::format(" of group {}", found - groups.data() + 1);
  refuse(out, fmt::format("TRYAGAIN this node's state{} is not served: {}; the command was not "
                          "executed, ask another node",
                          which, found->health.refused()));
  return true;
}

void Session::take_part(std::uint64_t number, std::vector<std::string> words, std::string reply) {
  Place& taken = place(number);
  if (taken.groups_left == 0 && taken.earlier.empty()) return fill(number, std::move(reply));
  const std::size_t before = taken.earlier.bytes();
  taken.earlier.add(reply);
  if (taken.groups_left == 0 || taken.earlier.failed()) return fill(number, taken.earlier.take());
  const std::size_t more = taken.earlier.bytes() - before;
  bytes_under_way_ += more;
  taken.bytes += more;
  taken.words = std::move(words);
  do {
    --taken.groups_left;
    ++taken.group;
  } while (taken.groups_left > 0 && !taken.group->here());
  // The last one is not here: there is nothing more to add.
  if (!taken.group->here()) return fill(number, taken.earlier.take());
  group_ = taken.group;
  if (std::string refusal; refuse_distrusted(refusal)) return fill(number, std::move(refusal));
  enter(number, judge_read(*taken.spec, taken.policy));
  submit_reads();
}

void Session::with_statuses(
    std::function<void(const std::vector<node::NodeStatus>&, std::string&)> format) {
  struct Gathered {
    std::vector<node::NodeStatus> statuses;  ///< each is written by one completion
    std::atomic<std::size_t> missing;
  };
  const std::vector<ServedGroup>& groups = context_.groups.all();
  const std::uint64_t number = take_place(PlaceKind::other, 0);
  auto gathered = std::make_shared<Gathered>();
  gathered->statuses.resize(groups.size());
  gathered->missing = groups.size();
  const auto give = [weak = weak_from_this(), &executor = *context_.executor, number, gathered,
                     format = std::move(format)](std::size_t of, node::NodeStatus status) {
    gathered->statuses[of] = std::move(status);
    if (gathered->missing.fetch_sub(1) > 1) return;
    executor.post([weak, number, gathered, format] {
      const auto self = weak.lock();
      if (!self) return;
      std::string reply;
      format(gathered->statuses, reply);
      self->fill(number, std::move(reply));
      self->on_progress_();
    });
  };
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i].group.status([give, i](node::NodeStatus status) { give(i, std::move(status)); });
  }
}

}  // namespace leasehold::server
