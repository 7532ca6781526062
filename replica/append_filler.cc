#include <leasehold/base/assert.h>
#include <leasehold/replica/append_filler.h>

#include <algorithm>
#include <string>
#include <utility>

namespace leasehold::replica {

void AppendFiller::fill(lease::Now now, const raft::AppendIntent& intent) {
  if (!context_.core.current(intent)) return;
  const raft::Index first = intent.prev.index.next();
  if (cache_.contains(first)) {
    std::vector<raft::Entry> entries;
    cache_.copy(first, intent.last, context_.limits.append_bytes_max, entries);
    send(now, intent, std::move(entries));
    return;
  }
  Pending& pending = pending_[intent.to];
  pending.intent = intent;
  if (pending.token == 0) read(pending);
}

void AppendFiller::read(Pending& pending) {
  pending.token = ++context_.last_read_token;
  pending.first = pending.intent.prev.index.next();
  raft::Index last = pending.intent.last;
  if (!cache_.empty()) last = std::min(last, cache_.first().prev());
  // One message's worth: the next intent asks for the rest.
  context_.ports.storage.read(
      {pending.token, pending.first, last, context_.limits.append_bytes_max});
}

bool AppendFiller::entries_read(lease::Now now, EntriesRead& event, std::optional<Error>& failure) {
  const auto found = std::find_if(pending_.begin(), pending_.end(), [&event](const auto& item) {
    return item.second.token == event.token;
  });
  if (found == pending_.end()) return false;
  Pending& pending = found->second;
  pending.token = 0;
  const raft::AppendIntent intent = pending.intent;
  // The intent may have been replaced, or have lost its leader, while the disk was read.
  if (!context_.core.current(intent)) return true;
  if (intent.prev.index.next() != pending.first) {
    fill(now, intent);
    return true;
  }
  if (pending.first <= context_.core.log().base().index) {
    // The log was cut while the disk was read. Nothing is sent: the core handles the peer again.
    context_.core.filled(now, intent, intent.prev.index, 0);
    return true;
  }
  if (!event.entries.ok()) {
    failure = event.entries.error();
    return true;
  }
  std::vector<raft::Entry>& entries = event.entries.value();
  raft::Index expected = pending.first;
  for (const raft::Entry& entry : entries) {
    if (entry.id.index != expected || context_.core.log().term_at(expected) != entry.id.term) {
      failure = Error{ErrorCode::corrupted,
                      "the log on disk does not hold entry " + std::to_string(expected.value()) +
                          " as it was written; restore this node from a healthy member"};
      return true;
    }
    expected = expected.next();
  }
  if (!entries.empty()) send(now, intent, std::move(entries));
  return true;
}

void AppendFiller::send(lease::Now now, const raft::AppendIntent& intent,
                        std::vector<raft::Entry> entries) {
  // The entries follow prev, and stand in the core's log in the terms they carry: a message never
  // mixes two histories.
  LEASEHOLD_ASSERT(!entries.empty() && entries.front().id.index == intent.prev.index.next());
  const raft::Index last = entries.back().id.index;
  LEASEHOLD_ASSERT(last <= intent.last);
  LEASEHOLD_ASSERT(context_.core.log().matches(entries.back().id));
  std::size_t bytes = 0;
  for (const raft::Entry& entry : entries) bytes += entry.payload.size();

  raft::AppendRequest request;
  request.term = intent.term;
  request.prev = intent.prev;
  request.entries = std::move(entries);
  request.commit = intent.commit;
  request.round = intent.round;
  request.lease = intent.lease;
  request.drift_ppm = intent.drift_ppm;
  request.bind = intent.bind;
  ++context_.counters.appends_sent;
  context_.send(intent.to, raft::Message(std::move(request)));
  context_.core.filled(now, intent, last, bytes);
}

}  // namespace leasehold::replica
