// How a session watches keys and sends their changes to its client.
#include <leasehold/base/assert.h>
#include <leasehold/server/front/listening.h>
#include <leasehold/server/front/session.h>

#include <algorithm>
#include <utility>

namespace leasehold::server {
namespace {

/// Of a text beside its bytes.
constexpr std::size_t kInterestCost = 256;

/// Revisions that are taken from the history at a time.
constexpr std::size_t kReadRevisions = 32;

const char* kind_name(kv::EventKind kind) {
  switch (kind) {
    case kv::EventKind::set: return "set";
    case kv::EventKind::deleted: return "deleted";
    case kv::EventKind::expired: return "expired";
    case kv::EventKind::revoked: return "revoked";
  }
  LEASEHOLD_UNREACHABLE();
}

/// Whether the history that an ear hears is of another replica now, or of none.
bool has_lost_group(const Listening& listening, const std::vector<ServedGroup>& groups) {
  return std::any_of(listening.ears.begin(), listening.ears.end(), [&](const Ear& ear) {
    const ServedGroup& group = groups[ear.group];
    const bool nowhere = listening.kind == Listening::Kind::watching && !group.here();
    return nowhere || group.stay() != ear.stay;
  });
}

}  // namespace

std::size_t cost_of_interest(const EventInterest& interest) {
  std::size_t cost = 0;
  for (const auto* texts :
       {&interest.filter.keys(), &interest.filter.prefixes(), &interest.names}) {
    for (const std::string& text : *texts) cost += 2 * text.size() + kInterestCost;
  }
  return cost;
}

std::size_t append_revision(std::string& out, const kv::Revision& revision,
                            const kv::KeyFilter& filter, bool values, Protocol protocol) {
  std::vector<const kv::Event*> wanted;
  for (const kv::Event& event : revision.events) {
    if (filter.wants(event.key)) wanted.push_back(&event);
  }
  if (wanted.empty()) return 0;
  append_push(out, 3, protocol);
  append_bulk(out, "events");
  append_integer(out, static_cast<std::int64_t>(revision.number));
  append_array(out, wanted.size());
  for (const kv::Event* event : wanted) {
    append_array(out, values ? 6 : 5);
    append_bulk(out, event->key);
    append_bulk(out, kind_name(event->kind));
    append_integer(out, static_cast<std::int64_t>(event->create_revision));
    append_integer(out, static_cast<std::int64_t>(event->version));
    append_integer(out, told_lease(event->lease));
    if (!values) continue;
    if (event->value_kept) {
      append_bulk(out, event->value);
    } else {
      append_null(out, protocol);
    }
  }
  return wanted.size();
}

void append_position(std::string& out, std::string_view word, std::uint64_t revision,
                     Protocol protocol) {
  append_push(out, 2, protocol);
  append_bulk(out, word);
  append_integer(out, static_cast<std::int64_t>(revision));
}

Session::~Session() {
  stop_listening();
}

EventHub& Session::hub(const Ear& ear) const {
  return context_.events->of(ear.group);
}

Listening& Session::begin_listening(bool subscribe) {
  LEASEHOLD_ASSERT(!listening_);
  listening_ = std::make_unique<Listening>();
  listening_->kind = subscribe ? Listening::Kind::subscribed : Listening::Kind::watching;
  const std::vector<ServedGroup>& groups = context_.groups.all();
  listening_->ears.resize(subscribe ? groups.size() : 1);
  for (std::size_t i = 0; i < listening_->ears.size(); ++i) {
    Ear& ear = listening_->ears[i];
    ear.group = subscribe ? i : static_cast<std::size_t>(group_ - groups.data());
    ear.stay = groups[ear.group].stay();
    ear.reader.next = hub(ear).head() + 1;
    ear.reader.wake = [this] { on_progress_(); };
  }
  listening_->said = coarse_now();
  auto& counted = subscribe ? context_.state.subscribers : context_.state.watchers;
  counted.fetch_add(1, std::memory_order_relaxed);
  // It stays for a long time and gets many messages: it does not belong on the thread of new
  // connections.
  good_in_a_row_ = std::max(good_in_a_row_, kProvingCommands);
  return *listening_;
}

std::uint64_t Session::watch(kv::KeyFilter filter, std::uint64_t from, bool values) {
  Listening& listening = begin_listening(false);
  listening.values = values;
  Ear& ear = listening.ears.front();
  ear.reader.interest.filter = std::move(filter);
  listening.held_bytes = cost_of_interest(ear.reader.interest);
  ear.reader.next = from;
  listening.told = from - 1;
  hub(ear).add(ear.reader);
  context_.counters->watches.add();
  return from;
}

Subscriptions& Session::change_subscriptions() {
  if (!listening_) {
    begin_listening(true);
  } else {
    for (Ear& ear : listening_->ears) hub(ear).remove(ear.reader);
  }
  return listening_->subscriptions;
}

void Session::subscriptions_changed() {
  if (listening_->subscriptions.empty()) return stop_listening();
  const Subscriptions& has = listening_->subscriptions;
  listening_->held_bytes = has.bytes() + kInterestCost * has.count();
  const ServedGroups& groups = context_.groups;
  for (Ear& ear : listening_->ears) {
    ear.reader.interest = has.interest([&](std::string_view key) {
      return &groups.of_slot(kv::slot_of(key)) == &groups.all()[ear.group];
    });
    listening_->held_bytes += cost_of_interest(ear.reader.interest);
    hub(ear).add(ear.reader);
  }
}

bool Session::watching() const {
  return listening_ && listening_->kind == Listening::Kind::watching;
}
bool Session::subscribed() const {
  return listening_ && listening_->kind == Listening::Kind::subscribed;
}
const Subscriptions* Session::subscriptions() const {
  return subscribed() ? &listening_->subscriptions : nullptr;
}

void Session::stop_listening() {
  if (!listening_) return;
  if (context_.events != nullptr) {
    for (Ear& ear : listening_->ears) hub(ear).remove(ear.reader);
  }
  auto& counted = subscribed() ? context_.state.subscribers : context_.state.watchers;
  counted.fetch_sub(1, std::memory_order_relaxed);
  listening_.reset();
}

void Session::leave_thread() {
  if (listening_) {
    for (Ear& ear : listening_->ears) hub(ear).remove(ear.reader);
  }
  // It is that thread's alone, and this session may end on another one.
  context_.events = nullptr;
}

void Session::move_to(Counters& counters, Executor& executor, EventHubs* events) {
  LEASEHOLD_ASSERT(line_.empty());
  context_.counters = &counters;
  context_.executor = &executor;
  context_.events = events;
  if (!listening_) return;
  for (Ear& ear : listening_->ears) hub(ear).add(ear.reader);
}

bool Session::may_run_while_listening(const CommandSpec& spec) const {
  if (!listening_ || protocol != Protocol::resp2) return true;
  switch (spec.while_listening) {
    case WhileListening::refused: return false;
    case WhileListening::watching: return watching();
    case WhileListening::subscribed: return subscribed();
    case WhileListening::run: return true;
  }
  LEASEHOLD_UNREACHABLE();
}

bool Session::wants_progress(std::chrono::nanoseconds now) {
  if (user_.seen != 0 && user_.seen != newest_users()) {
    look_up_user();
    if (closing_) return true;
  }
  if (listening_ && listening_->routes != context_.groups.routes_version()) return true;
  if (listening_ && has_lost_group(*listening_, context_.groups.all())) return true;
  if (!watching() || closing_ || !listening_->ears.front().reader.current) return false;
  const bool moved = hub(listening_->ears.front()).cursor() > listening_->told + 1;
  if (now - listening_->said < (moved ? kProgressPause : kQuietPause)) return false;
  listening_->progress_due = true;
  return true;
}

/// A slot may have gone to another group since the ears were placed. What changed there before this
/// session hears it is not told: a watcher reads the keys again.
void Session::follow_slots() {
  const std::uint64_t routes = context_.groups.routes_version();
  if (std::exchange(listening_->routes, routes) == routes) return;
  if (subscribed()) {
    change_subscriptions();
    return subscriptions_changed();
  }
  Ear& ear = listening_->ears.front();
  const kv::KeyFilter& filter = ear.reader.interest.filter;
  const auto& texts = filter.keys().empty() ? filter.prefixes() : filter.keys();
  if (!context_.groups.many()) return;
  const std::uint32_t slot = kv::slot_of(*texts.begin());
  const std::size_t group = context_.groups.number_of_slot(slot);
  // It may have been away and come back since.
  const kv::Slots& slots = context_.groups.all()[group].store.slots();
  if (group == ear.group && ear.reader.next > slots.taken_at(slot)) return;
  hub(ear).remove(ear.reader);
  ear.group = group;
  ear.stay = context_.groups.all()[group].stay();
  ear.reader.next = hub(ear).cursor();
  hub(ear).add(ear.reader);
  tell_of_loss(ear);
}

void Session::tell_events() {
  if (!listening_) return;
  follow_slots();
  // The client finds the node that has the group, and reads the keys again.
  if (has_lost_group(*listening_, context_.groups.all())) closing_ = true;
  const std::size_t ears = listening_->ears.size();
  // Each turn begins with another group: one that changes all the time does not hide the others.
  const std::size_t first =
      std::exchange(listening_->first_ear, (listening_->first_ear + 1) % ears);
  for (std::size_t i = 0; i < ears; ++i) {
    if (!tell_events(listening_->ears[(first + i) % ears])) return;
  }
  if (closing_ || !std::exchange(listening_->progress_due, false)) return;
  tell_position("progress", std::max(hub(listening_->ears.front()).cursor() - 1, listening_->told));
}

/// False: the rest follows when there is room, or in another turn.
bool Session::tell_events(Ear& ear) {
  while (!closing_ && !ear.reader.current) {
    if (output_.size() >= kOutputBytesMax) {
      stalled_ = true;
      return false;
    }
    if (work_ >= kTurnWork) {
      turn_over_ = true;
      return false;
    }
    const auto batch = hub(ear).read(ear.reader, kReadRevisions);
    if (batch.lost) {
      tell_of_loss(ear);
      continue;
    }
    // The history has begun again meanwhile, and the hub has not heard of it.
    if (batch.revisions.empty()) break;
    for (const kv::Revision& revision : batch.revisions) {
      if (closing_ || output_.size() >= kOutputBytesMax || work_ >= kTurnWork) break;
      if (!tell(ear, revision)) break;
      hub(ear).took(ear.reader, revision.number + 1);
    }
  }
  return true;
}

void Session::tell_position(std::string_view word, std::uint64_t revision) {
  append_position(output_, word, revision, protocol);
  listening_->said = coarse_now();
  listening_->told = revision;
}

/// A client that watches reads the keys again. Redis's clients know no such word: for them the
/// connection breaks, as there.
void Session::tell_of_loss(Ear& ear) {
  context_.counters->watch_resyncs.add();
  if (subscribed()) {
    closing_ = true;
    return;
  }
  const std::uint64_t next = hub(ear).cursor();
  tell_position("resync", next);
  listening_->told = next - 1;
  if (!ear.reader.current) hub(ear).took(ear.reader, next);
}

/// False: the rest of it follows when there is room.
bool Session::tell(Ear& ear, const kv::Revision& revision) {
  const std::size_t before = output_.size();
  std::size_t told = 0;
  if (watching()) {
    told = append_revision(output_, revision, ear.reader.interest.filter, listening_->values,
                           protocol);
    if (told > 0) {
      listening_->told = revision.number;
      listening_->said = coarse_now();
      listening_->progress_due = false;
    }
    work_ += revision.events.size() + (output_.size() - before) / kReplyBytesPerWord;
  } else {
    told = notify(ear, revision);
  }
  context_.counters->watch_events.add(told);
  if (told > 0) context_.counters->watch_messages.add(subscribed() ? told : 1);
  ++work_;
  if (ear.sent_events < revision.events.size() && subscribed()) return false;
  ear.sent_events = 0;
  ear.steps_left = kNotifyStepsMax;
  return true;
}

/// A revision has thousands of events, and each is repeated for each pattern: so as many of them as
/// fit. Returns how many messages that were.
std::size_t Session::notify(Ear& ear, const kv::Revision& revision) {
  std::size_t told = 0;
  std::size_t& at = ear.sent_events;
  while (at < revision.events.size() && output_.size() < kOutputBytesMax && work_ < kTurnWork) {
    const std::size_t before = output_.size();
    NotifyBudget budget{ear.steps_left};
    told += listening_->subscriptions.append(output_, revision.events[at++], protocol, budget);
    work_ += 1 + (ear.steps_left - budget.steps) / kPatternStepsPerWord +
             (output_.size() - before) / kReplyBytesPerWord;
    ear.steps_left = budget.steps;
    // No honest client has patterns that cost this much; a message may be missing.
    if (!budget.spent()) continue;
    closing_ = true;
    break;
  }
  return told;
}

}  // namespace leasehold::server
