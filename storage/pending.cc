#include <leasehold/base/assert.h>
#include <leasehold/storage/pending.h>

#include <algorithm>
#include <map>

namespace leasehold::storage {

namespace {

using Batches = std::vector<const Pending*>;

GroupWrite merge_group(const Batches& batches) {
  GroupWrite out;
  BatchBody& body = out.body;
  out.group = batches.front()->group;
  bool touched = false;
  for (const Pending* pending : batches) {
    if (pending->removed) body.removed = true;
    if (pending->foundation) {
      LEASEHOLD_ASSERT(!touched);
      body.foundation = *pending->foundation;
      // This node never had the entries below: the frame itself says that the log begins there.
      body.reset = body.foundation.base && body.foundation.base->id.index > raft::Index(0);
    }
    if (pending->confirmed) body.foundation.confirmed = pending->confirmed;
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
  body.state = batches.back()->state;
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

}  // namespace

Write merge(const std::vector<std::shared_ptr<const Pending>>& waiting) {
  Write write;
  std::map<raft::GroupId, Batches> groups;
  for (const auto& pending : waiting) {
    if (pending->process) write.process = pending->process;
    if (!pending->process || pending->removed) groups[pending->group].push_back(pending.get());
  }
  for (const auto& [id, batches] : groups) write.groups.push_back(merge_group(batches));
  return write;
}

}  // namespace leasehold::storage
