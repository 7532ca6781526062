#include <leasehold/base/assert.h>
#include <leasehold/server/front/event_hub.h>

#include <algorithm>

namespace leasehold::server {
namespace {

/// Revisions that look() takes at a time, so that connections have their turns between.
constexpr std::size_t kLookRevisions = 256;

}  // namespace

std::string_view event_name(const kv::Event& event) {
  using Cause = kv::EventCause;
  const bool set = event.kind == kv::EventKind::set;
  if (event.kind == kv::EventKind::expired) return "expired";
  switch (event.cause) {
    case Cause::rename: return set ? "rename_to" : "rename_from";
    case Cause::incr_by: return set ? "incrby" : "del";
    case Cause::incr_by_float: return set ? "incrbyfloat" : "del";
    case Cause::copy: return set ? "copy_to" : "del";
    case Cause::set_bit: return set ? "setbit" : "del";
    case Cause::append: return set ? "append" : "del";
    case Cause::set_range: return set ? "setrange" : "del";
    case Cause::attach_key: return event.lease == grant::LeaseId(0) ? "detach" : "attach";
    case Cause::expire_key: return set ? "expire" : "del";
    case Cause::persist: return "persist";
    case Cause::none: break;
  }
  return set ? "set" : "del";
}

void EventHub::add(EventReader& reader) {
  if (readers_.empty()) {
    // In this order: an event after this line is noticed, or is in the head.
    wanted_.store(true);
    cursor_ = history_.head() + 1;
  }
  readers_.insert(&reader);
  enlist(reader, true);
  reader.current = reader.next >= cursor_;
}

void EventHub::remove(EventReader& reader) {
  if (readers_.erase(&reader) == 0) return;
  enlist(reader, false);
  if (reader.current) reader.next = std::max(reader.next, cursor_);
  if (readers_.empty()) wanted_.store(false);
}

void EventHub::enlist(EventReader& reader, bool in) {
  const auto list = [&](ByText& by_text, const std::string& text) {
    if (in) {
      by_text[text].insert(&reader);
      return;
    }
    const auto at = by_text.find(text);
    at->second.erase(&reader);
    if (at->second.empty()) by_text.erase(at);
  };
  for (const std::string& key : reader.interest.filter.keys()) list(keys_, key);
  for (const std::string& name : reader.interest.names) list(names_, name);
  for (const std::string& prefix : reader.interest.filter.prefixes()) {
    ByText& of_length = prefixes_[prefix.size()];
    list(of_length, prefix);
    if (of_length.empty()) prefixes_.erase(prefix.size());
  }
}

kv::EventHistory::Batch EventHub::read(const EventReader& reader, std::size_t count) const {
  LEASEHOLD_ASSERT(!reader.current && reader.next < cursor_);
  // Not beyond the cursor: look() reads those later for all readers, and they would be sent twice.
  return history_.read(reader.next, std::min<std::uint64_t>(count, cursor_ - reader.next));
}

void EventHub::took(EventReader& reader, std::uint64_t next) const {
  LEASEHOLD_ASSERT(next > reader.next && next <= cursor_);
  reader.next = next;
  reader.current = next == cursor_;
}

bool EventHub::notice() {
  return wanted_.load() && !noticed_.exchange(true);
}

bool EventHub::look() {
  noticed_.store(false);
  if (readers_.empty()) return false;
  const auto batch = history_.read(cursor_, kLookRevisions);
  if (batch.lost) {
    // It is not known which readers wanted the lost events.
    const std::uint64_t lost = std::exchange(cursor_, history_.head() + 1);
    for (EventReader* reader : readers_) {
      if (cursor_ < lost) {
        begin_again(*reader);
        continue;
      }
      fall_behind(*reader, std::max(lost, reader->next));
      if (!reader->current && reader->next >= cursor_) reader->current = true;
    }
    return false;
  }
  for (const kv::Revision& revision : batch.revisions) {
    for (const kv::Event& event : revision.events) offer(event, revision.number);
  }
  cursor_ += batch.revisions.size();
  return batch.revisions.size() == kLookRevisions;
}

void EventHub::offer(const kv::Event& event, std::uint64_t revision) {
  if (!names_.empty()) offer(names_, std::string(event_name(event)), revision);
  const std::string key(event.key);
  offer(keys_, key, revision);
  for (const auto& [length, readers] : prefixes_) {
    if (length > key.size()) break;
    offer(readers, key.substr(0, length), revision);
  }
}

void EventHub::offer(const ByText& readers, const std::string& text, std::uint64_t revision) {
  const auto found = readers.find(text);
  if (found == readers.end()) return;
  for (EventReader* reader : found->second) fall_behind(*reader, revision);
}

/// `revision` is the first one that a current reader lacks.
void EventHub::fall_behind(EventReader& reader, std::uint64_t revision) {
  if (!reader.current || revision < reader.next) return;
  reader.current = false;
  reader.next = revision;
  reader.wake();
}

/// What it has read is of another state.
void EventHub::begin_again(EventReader& reader) {
  reader.current = false;
  reader.next = 0;
  reader.wake();
}

}  // namespace leasehold::server
