#include <leasehold/base/assert.h>
#include <leasehold/replica/command_envelope.h>
#include <leasehold/replica/log_reads.h>

#include <algorithm>
#include <string>
#include <utility>

namespace leasehold::replica {
namespace {

Error damaged(raft::Index index) {
  return {ErrorCode::corrupted, "the log on disk does not hold committed entry " +
                                    std::to_string(index.value()) +
                                    " as it was written; restore this node from a healthy member"};
}

/// The commands of the entries, without what the engine has put around them. A read through the log
/// has none.
Result<std::vector<CommittedCommand>> commands_of(const std::vector<raft::Entry>& entries) {
  std::vector<CommittedCommand> commands;
  for (const raft::Entry& entry : entries) {
    if (entry.kind != raft::EntryKind::command) continue;
    Result<CommandEnvelope> envelope = decode_envelope(entry.payload);
    if (!envelope.ok()) {
      return Error{envelope.error().code,
                   "entry " + std::to_string(entry.id.index.value()) +
                       " is committed but cannot be read: " + envelope.error().message};
    }
    Bytes& command = envelope.value().command;
    if (!command.empty()) commands.push_back({entry.id, std::move(command)});
  }
  return commands;
}

}  // namespace

void LogReads::read(lease::Now now, ReadLog& event) {
  LogReadFrom& from = event.from;
  from.index = std::max(from.index, raft::Index(1));
  const bool full = waiting_.size() >= context_.limits.log_reads_max;
  if (full || !take_place(now, from)) {
    context_.completions.add(event.done,
                             Error{ErrorCode::overloaded, "too many readers of the log"});
    return;
  }
  if (event.deadline <= now.promise) {
    context_.completions.add(event.done, Error{ErrorCode::timed_out, "nothing new came in time"});
    return;
  }
  const std::uint64_t number = ++last_number_;
  waiting_.emplace(number, Waiting{from, event.group, std::move(event.done)});
  context_.deadlines.add(event.deadline, WaiterKind::log_read, number);
}

/// Those whose time is over make room.
bool LogReads::take_place(lease::Now now, const LogReadFrom& from) {
  if (from.leaves) places_.erase(from.reader);
  if (from.reader == 0 || from.leaves) return true;
  if (places_.count(from.reader) == 0 && places_.size() >= context_.limits.log_reads_max) {
    std::erase_if(places_, [now](const auto& place) { return place.second.until <= now.promise; });
    if (places_.size() >= context_.limits.log_reads_max) return false;
  }
  places_[from.reader] = {from.index, now.promise + context_.limits.log_reader_patience};
  return true;
}

void LogReads::look(lease::Now now) {
  for (auto call = waiting_.begin(); call != waiting_.end();) {
    const bool answered = call->second.token == 0 && answer(now, call->second);
    call = answered ? waiting_.erase(call) : std::next(call);
  }
}

bool LogReads::answer(lease::Now now, Waiting& call) {
  const raft::Core& core = context_.core;
  const raft::Index first = call.from.index;
  if (first <= core.log().base().index) {
    LogPart part;
    part.cut = true;
    part.next = core.log().base().index.next();
    part.commit = core.commit_index();
    context_.completions.add(call.done, std::move(part));
    return true;
  }
  // What a reader of the log has seen, a reader under the lease may not miss (rule 52).
  const raft::Index last = context_.applied;
  if (first > last) return false;
  const std::size_t bytes =
      std::clamp<std::size_t>(call.from.bytes_max, 1, context_.limits.append_bytes_max);
  if (!cache_.contains(first)) {
    call.token = ++context_.last_read_token;
    const raft::Index on_disk = cache_.empty() ? last : std::min(last, cache_.first().prev());
    context_.ports.storage.read({call.token, first, on_disk, bytes});
    return false;
  }
  std::vector<raft::Entry> entries;
  cache_.copy(first, last, bytes, entries);
  std::optional<Error> failure;
  finish(now, call, std::move(entries), failure);
  return true;
}

/// The caller removes the call.
void LogReads::finish(lease::Now now, Waiting& call, std::vector<raft::Entry> entries,
                      std::optional<Error>& failure) {
  auto commands = commands_of(entries);
  if (!commands.ok()) {
    failure = commands.error();
    context_.completions.add(call.done, commands.error());
    return;
  }
  LogPart part;
  part.commands = std::move(commands).value();
  part.next = entries.back().id.index.next();
  part.commit = context_.core.commit_index();
  const auto place = places_.find(call.from.reader);
  if (place != places_.end()) {
    place->second.until = now.promise + context_.limits.log_reader_patience;
  }
  context_.completions.add(call.done, std::move(part));
}

bool LogReads::entries_read(lease::Now now, EntriesRead& event, std::optional<Error>& failure) {
  const auto call = std::find_if(waiting_.begin(), waiting_.end(), [&event](const auto& one) {
    return one.second.token == event.token;
  });
  if (call == waiting_.end()) return false;
  call->second.token = 0;
  raft::Index expected = call->second.from.index;
  // It was cut off while the disk was read: look() says so.
  if (expected <= context_.core.log().base().index) return true;
  if (!event.entries.ok()) {
    const Error& error = event.entries.error();
    const bool of_log = error.code != ErrorCode::overloaded && error.code != ErrorCode::stopped;
    if (of_log) failure = error;
    end(call, error);
    return true;
  }
  std::vector<raft::Entry>& entries = event.entries.value();
  for (const raft::Entry& entry : entries) {
    if (entry.id.index != expected || !context_.core.log().matches(entry.id)) {
      failure = damaged(expected);
      end(call, *failure);
      return true;
    }
    expected = expected.next();
  }
  finish(now, call->second, std::move(entries), failure);
  waiting_.erase(call);
  return true;
}

std::optional<raft::Index> LogReads::holds(lease::Now now) const {
  std::optional<raft::Index> lowest;
  const auto keep = [&lowest](raft::Index next) {
    lowest = std::min(lowest.value_or(next.prev()), next.prev());
  };
  for (const auto& [reader, place] : places_) {
    if (place.until > now.promise) keep(place.next);
  }
  for (const auto& [number, call] : waiting_) {
    if (call.from.reader != 0) keep(call.from.index);
  }
  return lowest;
}

LogReads::Calls::iterator LogReads::end(Calls::iterator call, Error error) {
  context_.completions.add(call->second.done, std::move(error));
  return waiting_.erase(call);
}

void LogReads::expired(std::uint64_t number) {
  const auto call = waiting_.find(number);
  LEASEHOLD_ASSERT(call != waiting_.end());
  end(call, {ErrorCode::timed_out, "nothing new came in time"});
}

void LogReads::cancelled(CallGroup group) {
  for (auto call = waiting_.begin(); call != waiting_.end();) {
    call = call->second.group == group ? end(call, {ErrorCode::timed_out, "it was cancelled"})
                                       : std::next(call);
  }
}

void LogReads::complete_all() {
  for (auto call = waiting_.begin(); call != waiting_.end();) {
    call = end(call, {ErrorCode::stopped, "the node is stopping"});
  }
  places_.clear();
}

}  // namespace leasehold::replica
