#include <leasehold/base/assert.h>
#include <leasehold/raft/ended_processes.h>

namespace leasehold::raft {

bool EndedProcesses::contains(const Peer& process) const {
  const auto known = newest_.find(process.id);
  return known != newest_.end() && known->second.uuid == process.uuid &&
         ended_by(process.process, known->second.process);
}

bool EndedProcesses::add(const Peer& process, const Membership& members) {
  if (contains(process)) return false;
  if (newest_.size() >= kMax && !newest_.contains(process.id)) {
    std::erase_if(newest_,
                  [&members](const auto& known) { return members.find(known.first) == nullptr; });
  }
  newest_[process.id] = process;
  LEASEHOLD_ASSERT(newest_.size() <= kMax);
  return true;
}

}  // namespace leasehold::raft
