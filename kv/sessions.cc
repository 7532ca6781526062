#include <leasehold/kv/sessions.h>

#include <utility>

namespace leasehold::kv {

std::vector<replica::SessionTable::Session> Sessions::list() const {
  const std::lock_guard lock(mutex_);
  return table_.list();
}

std::optional<replica::SessionId> Sessions::open(std::string_view owner, std::uint64_t above) {
  const std::lock_guard lock(mutex_);
  const auto id = table_.open(owner, above);
  if (id) changed_.insert(*id);
  return id;
}

bool Sessions::close(replica::SessionId id) {
  const std::lock_guard lock(mutex_);
  if (!table_.close(id)) return false;
  changed_.insert(id);
  return true;
}

void Sessions::close_all_of(std::string_view owner) {
  for (const replica::SessionId id : table_.of(owner)) close(id);
}

bool Sessions::touch(replica::SessionId id) {
  const std::lock_guard lock(mutex_);
  if (!table_.touch(id)) return false;
  changed_.insert(id);
  return true;
}

bool Sessions::expire(replica::SessionId id, std::uint64_t activity) {
  const std::lock_guard lock(mutex_);
  if (!table_.expire(id, activity)) return false;
  changed_.insert(id);
  return true;
}

replica::SessionTable::Begun Sessions::begin(replica::SessionId id, std::uint64_t sequence,
                                             std::uint64_t answered_below) {
  const std::lock_guard lock(mutex_);
  auto begun = table_.begin(id, sequence, answered_below);
  // Whatever names a session that there is counts as its activity.
  if (begun.verdict != replica::SessionTable::Verdict::no_session) changed_.insert(id);
  return begun;
}

void Sessions::finish(replica::SessionId id, std::uint64_t sequence, Bytes result) {
  const std::lock_guard lock(mutex_);
  table_.finish(id, sequence, std::move(result));
}

void Sessions::skip_ids(std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  table_.restore_newest(replica::SessionId(table_.newest().value() + count));
  skipped_ = true;
}

void Sessions::replace(replica::SessionTable table) {
  const std::lock_guard lock(mutex_);
  table_ = std::move(table);
  changed_.clear();
}

}  // namespace leasehold::kv
