#include <leasehold/base/assert.h>
#include <leasehold/grant/ttl_warning.h>
#include <leasehold/kv/command_level.h>
#include <leasehold/kv/load_limit.h>
#include <leasehold/server/front/acting.h>
#include <leasehold/server/front/duration.h>
#include <leasehold/server/front/gate.h>
#include <leasehold/server/front/key_times.h>
#include <leasehold/server/front/lease_word.h>
#include <leasehold/server/front/listening.h>
#include <leasehold/server/front/replies.h>
#include <leasehold/server/front/session.h>
#include <leasehold/server/front/slot_wait.h>
#include <leasehold/server/front/store_reader.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace leasehold::server {
namespace {

/// Between two warnings of a time to live in the log.
constexpr std::chrono::nanoseconds kTtlWarningPause = std::chrono::minutes(1);

/// Cost of a place in addition to its bytes, so that the limit in bytes also holds for a flood of
/// empty commands.
constexpr std::size_t kPlaceBytes = 256;

}  // namespace

Session::Session(Context context, std::uint64_t id, std::string address,
                 std::function<void()> on_progress)
    : context_(context),
      id_(id),
      address_(std::move(address)),
      on_progress_(std::move(on_progress)) {}

bool Session::has_room() const {
  return line_.size() < kInFlightMax && bytes_under_way_ < kInFlightBytesMax &&
         output_.size() < kOutputBytesMax;
}

std::size_t Session::held_bytes() const {
  return bytes_under_way_ + output_.capacity() + late_reply_.capacity() + parser_.held_bytes() +
         multi_.held_bytes() + (listening_ ? listening_->held_bytes : 0);
}

std::size_t Session::process(std::string_view input) {
  work_ = 0;
  coarse_ = coarse_now();
  flush_line();
  stalled_ = turn_over_ = false;
  std::size_t taken = 0;
  while (!closing_ && taken < input.size()) {
    if (user_.checking || waits_for_slot_) {
      stalled_ = true;
      break;
    }
    if (work_ >= kTurnWork) {
      turn_over_ = true;
      break;
    }
    if (!has_room()) {
      stalled_ = true;
      break;
    }
    if (user_.seen != newest_users()) {
      look_up_user();
      if (closing_) break;
    }
    if (!asked_ && begins_tls_record(input.front())) {
      end_tls();
      break;
    }
    const RequestLimits limits = is_stranger() ? kStrangerLimits : RequestLimits();
    const ParseStatus status = parser_.parse(input.substr(taken), limits);
    if (status == ParseStatus::incomplete) break;
    if (status == ParseStatus::malformed) {
      context_.counters->protocol_errors.add();
      std::string reply;
      append_error(reply, "ERR " + parser_.error());
      running_ = nullptr;
      silent_ = false;
      fill(take_place(PlaceKind::other, 0), std::move(reply));
      closing_ = true;
      break;
    }
    asked_ = true;
    const Arguments& args = parser_.args();
    if (is_http(args, parser_.is_line())) {
      end_http();
      break;
    }
    if (!args.empty()) {
      const CommandSpec* spec = context_.state.commands.find(args);
      if (spec != nullptr && (!may_run(spec->effect) || must_learn_users(*spec, args) ||
                              must_wait_for_slot(*spec, args))) {
        stalled_ = true;
        break;
      }
      run_one(spec, args);
      slot_waited_ = false;
      moves_seen_.reset();
    }
    taken += parser_.consumed();
  }
  parser_.trim();
  submit_reads();
  flush_line();
  // A full output or the end of the turn may hold back the reply of the first place.
  if (!line_.empty() && line_.front().state != PlaceState::waiting) {
    (output_.size() >= kOutputBytesMax ? stalled_ : turn_over_) = true;
  }
  tell_events();
  if (stalled_ && output_.size() >= kOutputBytesMax) context_.counters->output_stalls.add();
  return closing_ ? input.size() : taken;
}

void Session::run_one(const CommandSpec* spec, const Arguments& args) {
  context_.counters->note_command(spec == nullptr ? -1 : static_cast<int>(spec->group));
  ++good_in_a_row_;
  const std::size_t replied_before = output_.size();
  deferred_ = false;
  running_ = spec;
  running_args_ = &args;
  silent_ = reply_wish_ != ReplyWish::all;
  if (reply_wish_ == ReplyWish::not_the_next) reply_wish_ = ReplyWish::all;
  if (context_.state.tracer != nullptr) begin_span(spec);
  if (line_.empty() && !silent_) {
    dispatch(spec, args, output_);
  } else {
    late_reply_.clear();
    dispatch(spec, args, late_reply_);
    if (!deferred_) {
      if (silent_) late_reply_.clear();
      if (line_.empty()) {
        output_.append(late_reply_);
      } else {
        fill(take_place(PlaceKind::other, 0), std::move(late_reply_));
      }
    }
  }
  work_ += args.size() + (output_.size() - replied_before) / kReplyBytesPerWord;
  if (deferred_) return;
  if (trace.span)
    end_span(std::exchange(trace.span, nullptr), std::string_view(output_).substr(replied_before));
  const std::chrono::nanoseconds now = coarse_now();
  const std::chrono::nanoseconds took = now - std::exchange(coarse_, now);
  if (took.count() > 0 && spec != nullptr) {
    const bool shown = args.size() > 1 && !has_secret_words(*spec);
    note_slow(spec, shown ? args[1] : std::string_view(), took);
  }
}

void Session::dispatch(const CommandSpec* spec, const Arguments& args, std::string& out) {
  if (spec == nullptr) {
    if (multi_.open()) multi_.spoil();
    return refuse(out, context_.state.commands.problem_of_unknown(args));
  }
  if (listening_ && !may_run_while_listening(*spec)) {
    return refuse(
        out,
        fmt::format("ERR Can't execute '{}': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / LEASEHOLD "
                    "UNWATCH / PING / QUIT / RESET are allowed in this context. After HELLO 3 all "
                    "are",
                    spec->name));
  }
  if (!arity_fits(*spec, args.size())) {
    if (multi_.open()) multi_.note_refused(*spec);
    return refuse(out, fmt::format("ERR wrong number of arguments for '{}' command", spec->name));
  }
  if (std::exchange(user_.unlearned, false)) {
    multi_.note_refused(*spec);
    if (refuse_when_draining(out)) return;
    return refuse(out,
                  "NOLEADER this node cannot learn the newest users of its group at present; the "
                  "command was not executed, try again");
  }
  if (!user_.unrestricted && forbids(*spec, args, out)) return;
  if (const std::string problem = find_group(*spec, args); !problem.empty()) {
    multi_.note_refused(*spec);
    return refuse(out, problem);
  }
  if (multi_.open() && spec->in_each_group && context_.groups.many()) {
    multi_.spoil();
    return refuse(out, fmt::format("CROSSSLOT {} is of all groups, and a transaction of one",
                                   quoted(spec->name)));
  }
  if (multi_.open() && spec->in_multi != InMulti::run) {
    const std::string problem = queue(*spec, args);
    if (problem.empty()) return append_simple(out, "QUEUED");
    multi_.spoil();
    return refuse(out, problem);
  }
  if (spec->effect == CommandEffect::read) {
    if (multi_.open()) return refuse(out, "ERR WATCH inside MULTI is not allowed");
    return read(*spec, args, policy_, out);
  }
  if (spec->run == nullptr) return write(*spec, args, out);
  spec->run(*this, args, out);
}

std::string Session::queue(const CommandSpec& spec, const Arguments& args) {
  if (spec.in_multi == InMulti::refused) {
    return fmt::format(
        "ERR {} cannot be in a transaction: only commands on keys can, without "
        "scans, and PING, ECHO and TIME",
        quoted(spec.name));
  }
  kv::Operation operation;
  const bool here = spec.in_multi == InMulti::here;
  if (!here) {
    if (std::string problem = make(spec, args, operation); !problem.empty()) return problem;
  }
  const auto queued = here ? multi_.queue_here(spec, args) : multi_.queue(spec, operation);
  return queued ? "" : "ERR " + queued.error().message;
}

TransactionParts Session::run_queued(Multi::Finished& finished) {
  TransactionParts parts;
  parts.specs = std::move(finished.specs);
  for (const auto& [place, words] : finished.here) {
    parts.specs[place]->run(*this, Arguments(words.begin(), words.end()), parts.here[place]);
  }
  return parts;
}

void Session::refuse(std::string& out, std::string_view text) {
  count_refusal();
  append_error(out, text);
}

bool Session::refuse_when_draining(std::string& out, bool in_each_group) {
  if (context_.state.options.witness) {
    refuse(out, witness_refusal(context_.state));
    return true;
  }
  if (refuse_distrusted(out, in_each_group)) return true;
  if (!context_.state.draining.load(std::memory_order_relaxed)) return false;
  refuse(out,
         "TRYAGAIN this node is about to stop; the command was not executed, ask another node");
  return true;
}

void Session::count_refusal() {
  context_.counters->commands_refused.add();
  good_in_a_row_ = 0;
}

void Session::set_reply_wish(ReplyWish wish) {
  reply_wish_ = wish;
  silent_ = wish != ReplyWish::all;
}

std::string Session::describe(std::uint64_t idle_seconds) const {
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(coarse_now() - opened_);
  return fmt::format(
      "id={} addr={} name={} age={} idle={} flags={} db=0 multi={} under-way={} "
      "resp={} readmode={} user={} tls={} certificate={}\n",
      id_, address_, name, age.count(), idle_seconds,
      multi_.open() ? "x"
      : listening_  ? "P"
                    : "N",
      multi_.open() ? std::to_string(multi_.queued()) : "-1", line_.size(),
      static_cast<int>(protocol), read_policy_name(policy_), user_.name, tls ? 1 : 0,
      certificate_user);
}

// The line of replies.

std::uint64_t Session::take_place(PlaceKind kind, std::size_t bytes) {
  deferred_ = true;
  Place& taken = line_.emplace_back();
  taken.kind = kind;
  taken.silent = silent_;
  taken.begun = coarse_;
  taken.spec = running_;
  taken.group = group_;
  taken.slot = slot_;
  taken.span = std::move(trace.span);
  if (running_ != nullptr && running_args_->size() > 1 && !has_secret_words(*running_)) {
    taken.key = (*running_args_)[1].substr(0, kSlowLogKeyBytes);
  }
  taken.bytes = bytes + kPlaceBytes;
  bytes_under_way_ += taken.bytes;
  if (kind == PlaceKind::read) ++reads_under_way_;
  if (kind == PlaceKind::write) ++writes_under_way_;
  return first_place_ + line_.size() - 1;
}

Place& Session::place(std::uint64_t number) {
  // Each place is filled once, and leaves the line only when it has been.
  LEASEHOLD_ASSERT(number >= first_place_);
  LEASEHOLD_ASSERT(number - first_place_ < line_.size());
  return line_[static_cast<std::size_t>(number - first_place_)];
}

void Session::fill(std::uint64_t number, std::string reply) {
  Place& filled = place(number);
  LEASEHOLD_ASSERT(filled.state == PlaceState::waiting);
  filled.state = PlaceState::done;
  bytes_under_way_ -= filled.bytes;
  filled.bytes = reply.size() + kPlaceBytes;
  bytes_under_way_ += filled.bytes;
  filled.reply = std::move(reply);
}

void Session::flush_line() {
  if (line_.empty() || line_.front().state == PlaceState::waiting) return;
  while (!line_.empty() && output_.size() < kOutputBytesMax && work_ < kTurnWork) {
    Place& front = line_.front();
    if (front.state == PlaceState::waiting) break;
    const std::size_t before = output_.size();
    if (front.state == PlaceState::granted) {
      const Arguments args(front.words.begin(), front.words.end());
      group_ = front.group;
      if (!forbids_since(front.users, *front.spec, args, output_)) {
        if (front.groups_left > 0 || !front.earlier.empty() ||
            is_long_read(*front.spec, args.size())) {
          read_in_background();
          break;
        }
        if (is_long_watch(*front.spec, args.size())) {
          if (!watch_some(front, output_)) continue;
        } else if (!answer(*front.spec, args, front.stay, front.slot.has_value(), output_)) {
          wait_for_slot(first_place_);
          break;
        }
      }
      work_ += front.words.size() + (output_.size() - before) / kReplyBytesPerWord;
      if (front.silent) output_.resize(before);
    } else if (!front.silent) {
      output_.append(front.reply);
    }
    if (front.span) end_span(front.span, std::string_view(output_).substr(before));
    const std::chrono::nanoseconds took = coarse_now() - front.begun;
    if (front.spec != nullptr) note_slow(front.spec, front.key, took);
    bytes_under_way_ -= front.bytes;
    if (front.kind == PlaceKind::read) --reads_under_way_;
    if (front.kind == PlaceKind::write) --writes_under_way_;
    line_.pop_front();
    ++first_place_;
  }
}

void Session::note_slow(const CommandSpec* spec, std::string_view key,
                        std::chrono::nanoseconds took) {
  const lease::Duration threshold = context_.state.live.slowlog_threshold();
  if (threshold <= lease::Duration(0) || took < threshold) return;
  SlowCommand entry;
  entry.microseconds = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
  entry.command = spec->name;
  entry.key = key.substr(0, kSlowLogKeyBytes);
  entry.address = address_;
  entry.client_name = name;
  context_.state.slow_log.add(std::move(entry));
}

// Writes, and other requests to the node.

std::string Session::make(const CommandSpec& spec, const Arguments& args,
                          kv::Operation& operation) const {
  std::string problem = spec.make(args, operation);
  if (!problem.empty()) return problem;
  if (!in_selected_group() && attaches_by_id(operation))
    return lease_elsewhere(cannot_tell_group());
  if (auto seen = see_time(operation, group_->store, group_->lease_keeper); !seen) {
    return "ERR the store failed: " + seen.error().message;
  }
  forget_end(operation, group_->group.lease_view().level());
  if (const auto* grant = std::get_if<kv::GrantLease>(&operation)) warn_of_ttl(*grant);
  return problem;
}

void Session::warn_of_ttl(const kv::GrantLease& grant) const {
  const char* const warning = grant::ttl_warning(grant.ttl);
  ServerState& state = context_.state;
  if (warning == nullptr || !state.options.notice) return;
  const std::int64_t now = coarse_.count();
  std::int64_t next = state.next_ttl_warning.load(std::memory_order_relaxed);
  if (now < next ||
      !state.next_ttl_warning.compare_exchange_strong(next, now + kTtlWarningPause.count())) {
    return;
  }
  state.options.notice(
      fmt::format("{} asks for a lease of {}: {}. This is said once a minute at most", address_,
                  format_duration(grant.ttl), warning));
}

void Session::write(const CommandSpec& spec, const Arguments& args, std::string& out) {
  if (refuse_when_draining(out)) return;
  kv::Operation operation;
  if (const std::string problem = make(spec, args, operation); !problem.empty()) {
    return refuse(out, problem);
  }
  Result<Bytes> encoded =
      std::visit([](auto& o) { return kv::encode_command(kv::Command(std::move(o))); }, operation);
  if (!encoded) return refuse(out, "ERR " + encoded.error().message);
  const bool movable = slot_ && is_movable(operation);
  propose(std::move(encoded).value(), spec.form, {}, false, movable);
}

void Session::propose(Bytes command, ReplyForm form, TransactionParts parts, bool repeatable,
                      bool movable) {
  context_.counters->writes.add();
  const std::uint64_t number = take_place(PlaceKind::write, command.size());
  place(number).form = form;
  place(number).parts = std::move(parts);
  const auto refuse_place = [&](const std::string& problem) {
    std::string reply;
    append_error(reply, "ERR " + problem);
    fill(number, std::move(reply));
  };
  if (user_.rights && acts_for_itself(*user_.rights)) {
    auto acting = in_name_of(*user_.rights, at_home(), std::move(command));
    if (!acting) return refuse_place(acting.error().message);
    command = std::move(acting).value();
  }
  const raft::FeatureLevel level = group_->group.lease_view().level();
  if (const std::string problem = kv::refusal_below(command.view(), level); !problem.empty()) {
    count_refusal();
    return refuse_place(problem);
  }
  auto limited = kv::limit_loads(command, level);
  if (!limited) return refuse_place(limited.error().message);
  if (movable) place(number).command = limited.value();
  submit_write(number, std::move(limited).value(), repeatable);
}

void Session::finish_write(std::uint64_t number, const replica::ProposeResult& result) {
  std::string reply;
  switch (result.status) {
    case replica::ProposeStatus::committed:
      if (is_elsewhere(place(number), result.result)) return wait_for_slot(number);
      context_.counters->writes_committed.add();
      if (is_of_old_slot(place(number), result.result)) {
        append_error(reply, kSlotMoves);
        break;
      }
      if (has_left_session(place(number), result.result, context_.groups)) {
        append_error(reply, kSessionStays);
        break;
      }
      append_encoded_reply(reply, result.result, protocol, place(number).form, place(number).parts,
                           place(number).group->lease_keeper);
      break;
    case replica::ProposeStatus::dropped:
      context_.counters->writes_dropped.add();
      append_dropped(reply, result);
      break;
    case replica::ProposeStatus::unknown:
      context_.counters->writes_unknown.add();
      append_error(reply, "UNKNOWNOUTCOME the command may still be executed");
      break;
  }
  fill(number, std::move(reply));
  on_progress_();
}

std::function<void(std::string)> Session::answer_later() {
  const std::uint64_t number = take_place(PlaceKind::other, 0);
  return [weak = weak_from_this(), &executor = *context_.executor, number](std::string reply) {
    executor.post([weak, number, reply = std::move(reply)]() mutable {
      const auto self = weak.lock();
      if (!self) return;
      self->fill(number, std::move(reply));
      self->on_progress_();
    });
  };
}

void Session::with_status(std::function<void(const node::NodeStatus&, std::string&)> format) {
  const std::uint64_t number = take_place(PlaceKind::other, 0);
  group_->group.status([weak = weak_from_this(), &executor = *context_.executor, number,
                        format = std::move(format)](node::NodeStatus status) mutable {
    executor.post(
        [weak = std::move(weak), number, format = std::move(format), status = std::move(status)] {
          const auto self = weak.lock();
          if (!self) return;
          std::string reply;
          format(status, reply);
          self->fill(number, std::move(reply));
          self->on_progress_();
        });
  });
}

}  // namespace leasehold::server
