#include <leasehold/storage/pending.h>

#include <algorithm>

namespace leasehold::storage {

WriteGroup merge(const std::vector<std::shared_ptr<const Pending>>& group) {
  WriteGroup out;
  BatchBody& body = out.body;
  bool touched = false;
  for (const auto& pending : group) {
    if (pending->batch.reset) {
      body.foundation.base = pending->batch.reset;
      body.reset = true;
      touched = false;
      out.entries.clear();
    }
    if (const auto lowest = pending->lowest()) {
      if (!touched || *lowest <= body.first) {
        touched = true;
        body.first = *lowest;
        body.previous_term = pending->previous_term;
        out.entries.clear();
      } else {
        out.entries.resize(*lowest - body.first);
      }
      for (const raft::Entry& entry : pending->batch.entries) out.entries.push_back(&entry);
    }
    if (pending->batch.cut) body.foundation.base = pending->batch.cut;
  }
  body.state = group.back()->state;
  if (!touched) {
    body.first = body.state.last.index.next();
    body.previous_term = body.state.last.term;
  }
  if (!body.reset) return out;
  // A cut may have come behind the reset: the log begins there at once.
  const raft::LogId base = body.foundation.base->id;
  const auto below =
      std::find_if(out.entries.begin(), out.entries.end(),
                   [base](const auto* entry) { return entry->id.index > base.index; });
  out.entries.erase(out.entries.begin(), below);
  body.first = base.index.next();
  body.previous_term = base.term;
  return out;
}

}  // namespace leasehold::storage
