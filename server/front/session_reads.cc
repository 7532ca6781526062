// How a session's reads are justified, and what is remembered about it.
#include <leasehold/base/assert.h>
#include <leasehold/kv/query.h>
#include <leasehold/server/front/replies.h>
#include <leasehold/server/front/session.h>
#include <leasehold/server/front/slot_wait.h>
#include <leasehold/server/front/store_reader.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::server {
namespace {

/// A group that got the slot lately knows nothing of it where its state is old. Then the age of
/// that state says nothing of the slot's keys.
bool knows_slot(const ServedGroups& groups, const ServedGroup& group,
                std::optional<std::uint32_t> slot) {
  if (!slot || !groups.many()) return true;
  const auto count = static_cast<std::uint32_t>(groups.all().size());
  if (kv::first_group_of(*slot, count) == groups.number_of(group)) return true;
  return group.store.slots().list()->count(*slot) != 0;
}

}  // namespace

bool Session::read_keys_fit(const CommandSpec& spec, const Arguments& args, std::size_t& bytes,
                            std::string& out) {
  bool fit = true;
  for_each_key(spec, args,
               [&](std::string_view key) { fit = fit && key.size() <= kv::kKeyBytesMax; });
  for (const std::string_view word : args) bytes += word.size() + sizeof(std::string);
  if (fit) return true;
  // The client may go on as if it watched the key.
  if (is_of_transaction(spec)) multi_.fail_watch();
  refuse(out, fmt::format("ERR the key is longer than {} bytes", kv::kKeyBytesMax));
  return false;
}

void Session::read(const CommandSpec& spec, const Arguments& args, const ReadPolicy& policy,
                   std::string& out) {
  const bool in_each = spec.in_each_group && context_.groups.many();
  if (refuse_when_draining(out, in_each)) {
    if (is_of_transaction(spec)) multi_.fail_watch();
    return;
  }
  std::size_t bytes = 0;
  if (!read_keys_fit(spec, args, bytes, out)) return;
  if (in_each) group_ = &context_.groups.all().front();
  const ReadRoute route = judge_read(spec, policy);
  if (trace.span) note_read_span(route);
  const bool is_long = in_each || is_long_read(spec, args.size());
  if (is_long) good_in_a_row_ = 0;
  const bool at_once =
      route == ReadRoute::now && line_.empty() && !is_long && !is_long_watch(spec, args.size());
  if (at_once && answer(spec, args, last_read_.stay, slot_.has_value(), out)) return;
  const std::uint64_t number = take_place(PlaceKind::read, bytes);
  Place& taken = place(number);
  taken.spec = &spec;
  taken.users = user_.seen;
  taken.words.assign(args.begin(), args.end());
  taken.policy = policy;
  if (in_each) taken.groups_left = context_.groups.all().size() - 1;
  if (at_once) return wait_for_slot(number);
  enter(number, route);
}

void Session::enter(std::uint64_t number, ReadRoute route) {
  place(number).stay = last_read_.stay;
  switch (route) {
    case ReadRoute::now: place(number).state = PlaceState::granted; break;
    case ReadRoute::wait:
      waiting_.group = group_;
      waiting_index_ = std::max(waiting_index_, last_read_.index);
      waiting_.places.push_back(number);
      if (place(number).span) waiting_.span = place(number).span;
      waiting_.note = last_read_;
      break;
    case ReadRoute::ask: ask_node(number, place(number).policy); break;
  }
}

ReadRoute Session::judge_read(const CommandSpec& spec, const ReadPolicy& policy) {
  Counters& counters = *context_.counters;
  // The reads that wait together are of one group.
  const auto of_another = [this](const ReadBatch& batch) {
    return batch.group != nullptr && batch.group != group_;
  };
  if (of_another(waiting_) || of_another(asking_)) submit_reads();
  const replica::LeaseView& view = group_->group.lease_view();
  ReadNote& note = last_read_;
  ++note.number;
  note.policy = policy;
  note.fallback = ReadFallback::none;
  note.end = ReadEnd::under_way;
  note.stay = group_->stay();
  note.index = raft::Index();
  note.waited = lease::Duration(0);
  // The request is in memory: only now is the lease looked at, and the clock after it.
  // The age of the state is counted from before that look.
  auto began = raft::HolderInstant::earliest();
  if (policy.stale_bound) began = group_->group.clock().holder_now();
  note.look = view.look(group_->group.clock());
  note.applied = view.applied();
  note.bound_missed = false;
  if (policy.stale_bound) {
    if (view.fresh_since().covers(note.look.at, *policy.stale_bound) &&
        knows_slot(context_.groups, *group_, slot_)) {
      counters.stale_hits.add();
      note.end = ReadEnd::stale;
      return ReadRoute::now;
    }
    counters.stale_fallbacks.add();
    note.bound_missed = true;
  }
  if (policy.mode == raft::ReadMode::lease && context_.state.options.lease_reads) {
    const ReadRoute route = judge_lease_read(spec.reads_records);
    if (policy.stale_bound && route == ReadRoute::now) view.fresh_since().raise(began);
    if (route == ReadRoute::wait) waiting_.began = std::max(waiting_.began, began);
    return route;
  }
  if (policy.mode == raft::ReadMode::log) {
    counters.log_asked.add();
    return ReadRoute::ask;
  }
  if (policy.mode == raft::ReadMode::lease) note.fallback = ReadFallback::lease_reads_off;
  counters.quorum_asked.add();
  return ReadRoute::ask;
}

ReadRoute Session::judge_lease_read(bool in_order) {
  Counters& counters = *context_.counters;
  ReadNote& note = last_read_;
  const auto index = in_order ? note.look.index_in_order() : note.look.readable_index();
  if (!index) {
    counters.lease_fallbacks.add();
    const bool never = note.look.state.end == raft::HolderInstant::earliest();
    note.fallback = never ? ReadFallback::no_lease : ReadFallback::lease_over;
    return ReadRoute::ask;
  }
  if (note.applied >= *index) {
    counters.note_lease_hit(note.look.state.end - note.look.at);
    note.end = ReadEnd::lease;
    return ReadRoute::now;
  }
  counters.lease_waits.add();
  note.fallback = ReadFallback::apply_lags;
  note.index = *index;
  return ReadRoute::wait;
}

void Session::ask_node(std::uint64_t number, const ReadPolicy& policy) {
  const bool by_quorum =
      policy.mode == raft::ReadMode::lease && !context_.state.options.lease_reads;
  const raft::ReadMode mode = by_quorum ? raft::ReadMode::quorum : policy.mode;
  if (!asking_.places.empty() && asking_.mode != mode) submit_reads();
  asking_.mode = mode;
  asking_.group = group_;
  asking_.places.push_back(number);
  if (place(number).span) asking_.span = place(number).span;
  asking_.note = last_read_;
}

void Session::submit_reads() {
  const lease::Duration timeout = context_.state.options.command_timeout;
  if (!waiting_.places.empty()) {
    waiting_.waited = true;
    waiting_.view = &waiting_.group->group.lease_view();
    node::Group& group = waiting_.group->group;
    node::CallOptions options(timeout);
    options.trace = CommandTrace::of(waiting_.span);
    group.wait_applied(std::exchange(waiting_index_, raft::Index()), options,
                       read_completion(std::exchange(waiting_, {})));
  }
  if (!asking_.places.empty()) {
    // Before the node is asked: everything that is committed by now is within the index that it
    // will return.
    node::Group& group = asking_.group->group;
    asking_.began = group.clock().holder_now();
    asking_.view = &group.lease_view();
    const raft::ReadMode mode = asking_.mode;
    node::CallOptions options(timeout);
    options.trace = CommandTrace::of(asking_.span);
    group.read(mode, options, read_completion(std::exchange(asking_, {})));
  }
}

replica::ReadCompletion Session::read_completion(ReadBatch batch) {
  return [weak = weak_from_this(), &executor = *context_.executor,
          batch = std::move(batch)](replica::ReadResult result) mutable {
    executor.post([weak = std::move(weak), batch = std::move(batch), result = std::move(result)] {
      if (const auto self = weak.lock()) self->finish_reads(batch, result);
    });
  };
}

void Session::finish_reads(const ReadBatch& batch, const replica::ReadResult& result) {
  Counters& counters = *context_.counters;
  Count* count = &counters.reads_refused;
  ReadNote note = batch.note;
  note.end = ReadEnd::refused;
  if (result.index) {
    note.index = *result.index;
    if (batch.waited) {
      count = &counters.answered_lease;
      note.end = ReadEnd::lease_after_wait;
    } else if (batch.mode == raft::ReadMode::log) {
      count = &counters.answered_log;
      note.end = ReadEnd::log;
    } else {
      switch (result.basis) {
        case raft::ReadBasis::lease:
          count = &counters.answered_lease;
          note.end = ReadEnd::lease_of_node;
          break;
        case raft::ReadBasis::quorum:
          count = &counters.answered_quorum;
          note.end = ReadEnd::quorum;
          break;
        case raft::ReadBasis::leader:
          count = &counters.answered_leader;
          note.end = ReadEnd::leader;
          break;
      }
    }
    batch.view->fresh_since().raise(batch.began);
    if (batch.group == &context_.groups.home()) {
      context_.state.users_known.store(true, std::memory_order_relaxed);
    }
  }
  count->add(batch.places.size());
  note.waited = batch.group->group.clock().holder_now() - note.look.at;
  if (note.number >= last_read_.number) last_read_ = note;
  if (batch.span) note_justified(batch, note);
  for (const std::uint64_t number : batch.places) {
    if (result.index) {
      place(number).state = PlaceState::granted;
      continue;
    }
    if (is_of_transaction(*place(number).spec)) multi_.fail_watch();
    std::string reply;
    append_not_executed(reply, result.overloaded, result.leader);
    fill(number, std::move(reply));
  }
  on_progress_();
}

// A change of users may be applied at any moment, and what it hides be written behind it; and the
// slot of the key may go to another group. So both are looked at once more when the answer is
// there.
bool Session::answer(const CommandSpec& spec, const Arguments& args, std::uint64_t stay_before,
                     bool may_wait, std::string& out) {
  const bool only_reads = spec.make != nullptr || spec.scan != nullptr;
  const SlotStay stay(*group_, stay_before, context_.state.commands, spec, args);
  const std::size_t before = out.size();
  const bool listened = listening_ != nullptr;
  std::uint64_t seen = user_.seen;
  while (!forbids_since(seen, spec, args, out)) {
    if (spec.run != nullptr) {
      spec.run(*this, args, out);
    } else {
      StoreReader reader(context_.groups, *group_, context_.state, protocol);
      if (!user_.unrestricted) reader.limit(user_.rights);
      reader.answer(spec, args, out);
      const std::size_t shown = out.size() - before;
      if (reader.loaded() > shown) charge_loaded(reader.loaded() - shown);
      if (reader.refused()) count_refusal();
    }
    if (!only_reads || seen == newest_users()) break;
    out.resize(before);
  }
  if (stay.stayed()) return true;
  out.resize(before);
  // A watch has begun where the slot was.
  if (!listened) stop_listening();
  if (may_wait) return false;
  if (is_of_transaction(spec)) multi_.fail_watch();
  refuse(out, kSlotMoves);
  return true;
}

/// The keys need not be of one instant: each has been as it is watched since the command came.
bool Session::watch_some(Place& front, std::string& out) {
  const std::size_t count = std::min(front.words.size(), kShortReadWords);
  const auto end = front.words.begin() + static_cast<std::ptrdiff_t>(count);
  const std::size_t before = out.size();
  answer(*front.spec, Arguments(front.words.begin(), end), front.stay, false, out);
  // Of the parts, one that is refused has the reply, or the last one.
  if (end == front.words.end() || out[before] == '-') return true;
  work_ += count;
  out.resize(before);
  front.words.erase(front.words.begin() + 1, end);
  return false;
}

void Session::read_in_background() {
  Place& front = line_.front();
  front.state = PlaceState::waiting;
  const std::uint64_t number = first_place_;
  context_.background->post([weak = weak_from_this(), &executor = *context_.executor, number,
                             &groups = context_.groups, &group = *front.group,
                             &state = context_.state, dialect = protocol, spec = front.spec,
                             stay_before = front.stay, words = std::move(front.words),
                             limited = !user_.unrestricted, rights = user_.rights]() mutable {
    if (weak.expired()) return;  // the client has gone
    const Arguments args(words.begin(), words.end());
    const SlotStay stay(group, stay_before, state.commands, *spec, args);
    StoreReader reader(groups, group, state, dialect);
    if (limited) reader.limit(rights);
    std::string reply;
    reader.answer(*spec, args, reply);
    executor.post([weak, number, words = std::move(words), reply = std::move(reply),
                   stayed = stay.stayed(), refused = reader.refused()]() mutable {
      const auto self = weak.lock();
      if (!self) return;
      Place& place = self->place(number);
      if (place.users != self->newest_users()) {
        // The users have changed meanwhile: it is made again, if it may be.
        place.words = std::move(words);
        place.state = PlaceState::granted;
      } else if (!stayed && place.slot) {
        place.words = std::move(words);
        self->wait_for_slot(number);
      } else if (!stayed) {
        std::string refusal;
        self->refuse(refusal, kSlotMoves);
        self->fill(number, std::move(refusal));
      } else {
        if (refused) self->count_refusal();
        self->take_part(number, std::move(words), std::move(reply));
      }
      self->on_progress_();
    });
  });
}

void StoreReader::answer(const CommandSpec& spec, const Arguments& args, std::string& out) {
  if (spec.scan != nullptr) return spec.scan(*this, args, out);
  kv::Operation query;
  if (const std::string problem = spec.make(args, query); !problem.empty()) {
    return refuse(out, problem);
  }
  const Result<kv::Reply> reply = kv::query(query, group.store, &loaded_);
  if (!reply) return append_error(out, "ERR the store failed: " + reply.error().message);
  append_kv_reply(out, reply.value(), protocol, spec.form, {}, group.lease_keeper);
}

}  // namespace leasehold::server
