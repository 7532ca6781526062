#include <leasehold/raft/ready.h>

namespace leasehold::raft {

void Ready::give_back() {
  const auto give_back_if_empty = [](auto& vector) {
    if (vector.empty()) vector.shrink_to_fit();
  };
  give_back_if_empty(messages);
  give_back_if_empty(intents);
  give_back_if_empty(snapshots);
  give_back_if_empty(persist.entries);
  give_back_if_empty(held);
  give_back_if_empty(chunks);
  give_back_if_empty(reads);
  give_back_if_empty(events);
}

void Ready::clear() {
  id = ReadyId();
  lease.reset();
  release.reset();
  messages.clear();
  intents.clear();
  snapshots.clear();
  persist.id = ReadyId();
  persist.hard_state.reset();
  persist.reset.reset();
  persist.truncate_from.reset();
  persist.entries.clear();
  persist.cut.reset();
  held.clear();
  chunks.clear();
  install.reset();
  apply_to = Index();
  commit = Index();
  reads.clear();
  events.clear();
}

}  // namespace leasehold::raft
