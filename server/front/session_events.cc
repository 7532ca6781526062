// How a session watches keys and sends their changes to its client.
#include <leasehold/base/assert.h>
#include <leasehold/server/front/listening.h>
#include <leasehold/server/front/session.h>

#include <algorithm>
#include <utility>

namespace leasehold::server {
namespace {

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

}  // namespace

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

Listening& Session::begin_listening(bool subscribe) {
  LEASEHOLD_ASSERT(!listening_);
  listening_ = std::make_unique<Listening>();
  listening_->kind = subscribe ? Listening::Kind::subscribed : Listening::Kind::watching;
  listening_->reader.next = context_.events->head() + 1;
  listening_->reader.wake = [this] { on_progress_(); };
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
  std::size_t bytes = 0;
  for (const auto* texts : {&filter.keys(), &filter.prefixes()}) {
    for (const std::string& text : *texts) bytes += text.size();
  }
  listening.held_bytes = cost_of_interests(filter.keys().size() + filter.prefixes().size(), bytes);
  listening.reader.interest.filter = std::move(filter);
  listening.reader.next = from;
  listening.told = from - 1;
  context_.events->add(listening.reader);
  context_.counters->watches.add();
  return from;
}

Subscriptions& Session::change_subscriptions() {
  if (!listening_) {
    begin_listening(true);
  } else {
    context_.events->remove(listening_->reader);
  }
  return listening_->subscriptions;
}

void Session::subscriptions_changed() {
  if (listening_->subscriptions.empty()) return stop_listening();
  const Subscriptions& has = listening_->subscriptions;
  listening_->held_bytes = cost_of_interests(has.count(), has.bytes());
  listening_->reader.interest = has.interest();
  context_.events->add(listening_->reader);
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
  if (context_.events != nullptr) context_.events->remove(listening_->reader);
  auto& counted = subscribed() ? context_.state.subscribers : context_.state.watchers;
  counted.fetch_sub(1, std::memory_order_relaxed);
  listening_.reset();
}

void Session::leave_thread() {
  if (listening_) context_.events->remove(listening_->reader);
  // It is that thread's alone, and this session may end on another one.
  context_.events = nullptr;
}

void Session::move_to(Counters& counters, Executor& executor, EventHub* events) {
  LEASEHOLD_ASSERT(line_.empty());
  context_.counters = &counters;
  context_.executor = &executor;
  context_.events = events;
  if (listening_) events->add(listening_->reader);
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
  if (!watching() || closing_ || !listening_->reader.current) return false;
  const bool moved = context_.events->cursor() > listening_->told + 1;
  if (now - listening_->said < (moved ? kProgressPause : kQuietPause)) return false;
  listening_->progress_due = true;
  return true;
}

void Session::tell_events() {
  while (listening_ && !closing_ && !listening_->reader.current) {
    if (output_.size() >= kOutputBytesMax) {
      stalled_ = true;
      return;
    }
    if (work_ >= kTurnWork) {
      turn_over_ = true;
      return;
    }
    const auto batch = context_.events->read(listening_->reader, kReadRevisions);
    if (batch.lost) {
      tell_of_loss();
      continue;
    }
    for (const kv::Revision& revision : batch.revisions) {
      if (closing_ || output_.size() >= kOutputBytesMax || work_ >= kTurnWork) break;
      if (!tell(revision)) break;
      context_.events->took(listening_->reader, revision.number + 1);
    }
  }
  if (!listening_ || closing_ || !std::exchange(listening_->progress_due, false)) return;
  tell_position("progress", std::max(context_.events->cursor() - 1, listening_->told));
}

void Session::tell_position(std::string_view word, std::uint64_t revision) {
  append_position(output_, word, revision, protocol);
  listening_->said = coarse_now();
  listening_->told = revision;
}

/// A client that watches reads the keys again. Redis's clients know no such word: for them the
/// connection breaks, as there.
void Session::tell_of_loss() {
  context_.counters->watch_resyncs.add();
  if (subscribed()) {
    closing_ = true;
    return;
  }
  const std::uint64_t next = context_.events->cursor();
  tell_position("resync", next);
  listening_->told = next - 1;
  context_.events->took(listening_->reader, next);
}

bool Session::tell(const kv::Revision& revision) {
  const std::size_t before = output_.size();
  std::size_t told = 0;
  if (watching()) {
    told = append_revision(output_, revision, listening_->reader.interest.filter,
                           listening_->values, protocol);
    if (told > 0) {
      listening_->told = revision.number;
      listening_->said = coarse_now();
      listening_->progress_due = false;
    }
    work_ += revision.events.size() + (output_.size() - before) / kReplyBytesPerWord;
  } else {
    told = notify(revision);
  }
  context_.counters->watch_events.add(told);
  if (told > 0) context_.counters->watch_messages.add(subscribed() ? told : 1);
  ++work_;
  if (listening_->sent_events < revision.events.size() && subscribed()) return false;
  listening_->sent_events = 0;
  listening_->steps_left = kNotifyStepsMax;
  return true;
}

/// A revision has thousands of events, and each is repeated for each pattern: so as many of them as
/// fit. Returns how many messages that were.
std::size_t Session::notify(const kv::Revision& revision) {
  std::size_t told = 0;
  std::size_t& at = listening_->sent_events;
  while (at < revision.events.size() && output_.size() < kOutputBytesMax && work_ < kTurnWork) {
    const std::size_t before = output_.size();
    NotifyBudget budget{listening_->steps_left};
    told += listening_->subscriptions.append(output_, revision.events[at++], protocol, budget);
    work_ += 1 + (listening_->steps_left - budget.steps) / kPatternStepsPerWord +
             (output_.size() - before) / kReplyBytesPerWord;
    listening_->steps_left = budget.steps;
    // No honest client has patterns that cost this much; a message may be missing.
    if (!budget.spent()) continue;
    closing_ = true;
    break;
  }
  return told;
}

}  // namespace leasehold::server
