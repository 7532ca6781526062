#include <leasehold/raft/ready.h>

namespace leasehold::raft {

void Ready::clear() {
  id = ReadyId();
  lease.reset();
  messages.clear();
  intents.clear();
  persist.id = ReadyId();
  persist.hard_state.reset();
  persist.truncate_from.reset();
  persist.entries.clear();
  held.clear();
  apply_to = Index();
  commit = Index();
  reads.clear();
  events.clear();
}

}  // namespace leasehold::raft
