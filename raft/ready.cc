#include <leasehold/raft/ready.h>

namespace leasehold::raft {

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
