#include <leasehold/base/assert.h>
#include <leasehold/server/commands.h>
#include <leasehold/server/session.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace leasehold::server {
namespace {

/// What a place costs beside its bytes, so that a flood of empty commands is bounded by bytes as
/// well.
constexpr std::size_t kPlaceBytes = 128;

void append_kv_reply(std::string& out, const kv::Reply& reply, Protocol protocol) {
  if (std::holds_alternative<kv::Ok>(reply)) {
    append_simple(out, "OK");
  } else if (std::holds_alternative<kv::Nil>(reply)) {
    append_null(out, protocol);
  } else if (const auto* integer = std::get_if<kv::Integer>(&reply)) {
    append_integer(out, integer->value);
  } else if (const auto* value = std::get_if<kv::ValueReply>(&reply)) {
    append_bulk(out, value->value.view());
  } else if (const auto* error = std::get_if<kv::ErrorReply>(&reply)) {
    const bool unknown = error->kind == kv::ErrorKind::store_failed;
    append_error(out, (unknown ? "UNKNOWNOUTCOME " : "ERR ") + error->text);
  }
}

std::string not_executed(bool overloaded, raft::NodeId leader) {
  std::string out;
  if (overloaded) {
    append_error(out, "TRYAGAIN too many commands are waiting; this one was not executed");
  } else if (leader == raft::kNobody) {
    append_error(out, "NOLEADER no leader is known; the command was not executed, try again");
  } else {
    append_error(out, "TRYAGAIN the leader changed; the command was not executed");
  }
  return out;
}

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

bool Session::may_run(CommandEffect effect) const {
  switch (effect) {
    case CommandEffect::none: return true;
    case CommandEffect::read: return writes_under_way_ == 0;
    case CommandEffect::write: return reads_under_way_ == 0;
    case CommandEffect::dialect: return line_.empty();
  }
  LEASEHOLD_UNREACHABLE();
}

std::size_t Session::process(std::string_view input) {
  flush_line();
  stalled_ = false;
  std::size_t taken = 0;
  while (!closing_ && taken < input.size()) {
    if (!has_room()) {
      stalled_ = true;
      break;
    }
    const ParseStatus status = parser_.parse(input.substr(taken));
    if (status == ParseStatus::incomplete) break;
    if (status == ParseStatus::malformed) {
      context_.counters.protocol_errors.add();
      std::string reply;
      append_error(reply, "ERR " + parser_.error());
      fill(take_place(PlaceKind::other, 0), std::move(reply));
      closing_ = true;
      break;
    }
    const Arguments& args = parser_.args();
    if (!args.empty()) {
      const CommandSpec* spec = find_command(args.front());
      if (spec != nullptr && !may_run(spec->effect)) {
        stalled_ = true;
        break;
      }
      run_one(spec, args);
    }
    taken += parser_.consumed();
  }
  submit_reads();
  flush_line();
  // A read whose turn has come may be held back by a full output alone.
  if (!line_.empty() && line_.front().state != PlaceState::waiting) stalled_ = true;
  if (stalled_ && output_.size() >= kOutputBytesMax) context_.counters.output_stalls.add();
  return closing_ ? input.size() : taken;
}

void Session::run_one(const CommandSpec* spec, const Arguments& args) {
  context_.counters.commands.add();
  deferred_ = false;
  if (line_.empty()) {
    run_command(*this, spec, args, output_);
    return;
  }
  late_reply_.clear();
  run_command(*this, spec, args, late_reply_);
  if (!deferred_) fill(take_place(PlaceKind::other, 0), std::move(late_reply_));
}

std::uint64_t Session::take_place(PlaceKind kind, std::size_t bytes) {
  deferred_ = true;
  Place& taken = line_.emplace_back();
  taken.kind = kind;
  taken.bytes = bytes + kPlaceBytes;
  bytes_under_way_ += taken.bytes;
  if (kind == PlaceKind::read) ++reads_under_way_;
  if (kind == PlaceKind::write) ++writes_under_way_;
  return first_place_ + line_.size() - 1;
}

Session::Place& Session::place(std::uint64_t number) {
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
  while (!line_.empty() && output_.size() < kOutputBytesMax) {
    Place& front = line_.front();
    if (front.state == PlaceState::waiting) return;
    if (front.state == PlaceState::granted) {
      answer(front.read.kind, front.read.keys, output_);
    } else {
      output_.append(front.reply);
    }
    bytes_under_way_ -= front.bytes;
    if (front.kind == PlaceKind::read) --reads_under_way_;
    if (front.kind == PlaceKind::write) --writes_under_way_;
    line_.pop_front();
    ++first_place_;
  }
}

template <class Keys>
void Session::answer(ReadCommand::Kind kind, const Keys& keys, std::string& out) const {
  const kv::Store& store = context_.store;
  if (kind == ReadCommand::Kind::get) {
    const auto found = store.get(*keys.begin());
    if (!found) {
      append_error(out, "ERR the store failed: " + found.error().message);
    } else if (found.value()) {
      append_bulk(out, found.value()->bytes.view());
    } else {
      append_null(out, protocol);
    }
    return;
  }
  std::int64_t count = 0;
  if (kind == ReadCommand::Kind::size) count = static_cast<std::int64_t>(store.size());
  for (const auto& key : keys) {
    const auto found = store.exists(key);
    if (!found) {
      append_error(out, "ERR the store failed: " + found.error().message);
      return;
    }
    count += found.value() ? 1 : 0;
  }
  append_integer(out, count);
}

void Session::set_read_mode(node::ReadMode mode) {
  submit_reads();
  read_mode_ = mode;
}

void Session::read(const Arguments& args, ReadCommand::Kind kind, std::string& out) {
  struct KeyRange {  // the words behind the command's name
    const Arguments& words;
    auto begin() const { return words.begin() + 1; }
    auto end() const { return words.end(); }
  };
  const KeyRange keys{args};
  std::size_t bytes = 0;
  for (const std::string_view key : keys) {
    if (key.size() > kv::kKeyBytesMax) {
      context_.counters.commands_refused.add();
      append_error(out,
                   "ERR the key is longer than " + std::to_string(kv::kKeyBytesMax) + " bytes");
      return;
    }
    bytes += key.size() + sizeof(std::string);
  }
  Counters& counters = context_.counters;
  bool granted = false;
  std::optional<raft::Index> wait_for;
  if (read_mode_ == node::ReadMode::log) {
    counters.log_asked.add();
  } else if (read_mode_ == node::ReadMode::quorum || !context_.state.options.lease_reads) {
    counters.quorum_asked.add();
  } else {
    // The request is in memory: only now is the lease looked at, and the clock after it.
    const node::LeaseView& view = context_.node.lease_view();
    const auto index = view.readable_index(context_.node.clock());
    if (!index) {
      counters.lease_fallbacks.add();
    } else if (view.applied() >= *index) {
      counters.lease_hits.add();
      if (line_.empty()) return answer(kind, keys, out);
      granted = true;
    } else {
      counters.lease_waits.add();
      wait_for = index;
    }
  }
  const std::uint64_t number = take_place(PlaceKind::read, bytes);
  Place& taken = place(number);
  taken.read.kind = kind;
  taken.read.keys.assign(keys.begin(), keys.end());
  if (granted) {
    taken.state = PlaceState::granted;
  } else if (wait_for) {
    waiting_index_ = std::max(waiting_index_, *wait_for);
    waiting_.push_back(number);
  } else {
    asking_.push_back(number);
  }
}

void Session::submit_reads() {
  const lease::Duration timeout = context_.state.options.command_timeout;
  if (!waiting_.empty()) {
    context_.node.wait_applied(
        waiting_index_, timeout,
        read_completion(std::exchange(waiting_, {}), true, node::ReadMode::lease));
  }
  if (!asking_.empty()) {
    const bool by_lease = read_mode_ != node::ReadMode::lease || context_.state.options.lease_reads;
    const node::ReadMode mode = by_lease ? read_mode_ : node::ReadMode::quorum;
    context_.node.read(mode, timeout, read_completion(std::exchange(asking_, {}), false, mode));
  }
}

node::ReadCompletion Session::read_completion(PlaceNumbers places, bool waited,
                                              node::ReadMode mode) {
  return [weak = weak_from_this(), &executor = context_.executor, places = std::move(places),
          waited, mode](node::ReadResult result) mutable {
    executor.post([weak = std::move(weak), places = std::move(places), waited, mode,
                   result = std::move(result)] {
      if (const auto self = weak.lock()) self->finish_reads(places, waited, mode, result);
    });
  };
}

void Session::finish_reads(const PlaceNumbers& places, bool waited, node::ReadMode mode,
                           const node::ReadResult& result) {
  Counters& counters = context_.counters;
  Count* count = &counters.reads_refused;
  if (result.index) {
    if (waited) {
      count = &counters.answered_lease;
    } else if (mode == node::ReadMode::log) {
      count = &counters.answered_log;
    } else {
      switch (result.basis) {
        case raft::ReadBasis::lease: count = &counters.answered_lease; break;
        case raft::ReadBasis::quorum: count = &counters.answered_quorum; break;
        case raft::ReadBasis::leader: count = &counters.answered_leader; break;
      }
    }
  }
  count->add(places.size());
  for (const std::uint64_t number : places) {
    if (result.index) {
      place(number).state = PlaceState::granted;
    } else {
      fill(number, not_executed(result.overloaded, result.leader));
    }
  }
  flush_line();
  on_progress_();
}

void Session::write(const kv::Command& command, std::string& out) {
  Result<Bytes> encoded = kv::encode_command(command);
  if (!encoded) {
    context_.counters.commands_refused.add();
    append_error(out, "ERR " + encoded.error().message);
    return;
  }
  context_.counters.writes.add();
  const std::uint64_t number = take_place(PlaceKind::write, encoded.value().size());
  context_.node.propose(
      std::move(encoded).value(), context_.state.options.command_timeout,
      [weak = weak_from_this(), &executor = context_.executor,
       number](node::ProposeResult result) mutable {
        executor.post([weak = std::move(weak), number, result = std::move(result)] {
          if (const auto self = weak.lock()) self->finish_write(number, result);
        });
      });
}

void Session::finish_write(std::uint64_t number, const node::ProposeResult& result) {
  std::string reply;
  switch (result.status) {
    case node::ProposeStatus::committed: {
      context_.counters.writes_committed.add();
      const Result<kv::Reply> decoded = kv::decode_reply(result.result);
      if (decoded) {
        append_kv_reply(reply, decoded.value(), protocol);
      } else {
        append_error(reply, "ERR the command was executed, but its result cannot be read: " +
                                decoded.error().message);
      }
      break;
    }
    case node::ProposeStatus::dropped:
      context_.counters.writes_dropped.add();
      reply = not_executed(result.overloaded, result.leader);
      break;
    case node::ProposeStatus::unknown:
      context_.counters.writes_unknown.add();
      append_error(reply, "UNKNOWNOUTCOME the command may yet be executed");
      break;
  }
  fill(number, std::move(reply));
  flush_line();
  on_progress_();
}

void Session::with_status(std::function<void(const node::NodeStatus&, std::string&)> format) {
  const std::uint64_t number = take_place(PlaceKind::other, 0);
  context_.node.status([weak = weak_from_this(), &executor = context_.executor, number,
                        format = std::move(format)](node::NodeStatus status) mutable {
    executor.post(
        [weak = std::move(weak), number, format = std::move(format), status = std::move(status)] {
          const auto self = weak.lock();
          if (!self) return;
          std::string reply;
          format(status, reply);
          self->fill(number, std::move(reply));
          self->flush_line();
          self->on_progress_();
        });
  });
}

}  // namespace leasehold::server
