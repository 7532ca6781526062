// Which commands of a pipeline may be under way at the same time.
#include <leasehold/base/assert.h>
#include <leasehold/server/front/session.h>

namespace leasehold::server {

bool Session::may_run(CommandEffect effect) const {
  // Nothing else is in the line then.
  if (!line_.empty()) {
    const CommandSpec* const front = line_.front().spec;
    if (front != nullptr && front->effect == CommandEffect::alone) return false;
  }
  switch (effect) {
    case CommandEffect::none: return true;
    case CommandEffect::read:
    case CommandEffect::after_writes: return writes_under_way_ == 0;
    case CommandEffect::write:
    case CommandEffect::after_reads: return reads_under_way_ == 0;
    case CommandEffect::after_all:
    case CommandEffect::alone: return line_.empty();
  }
  LEASEHOLD_UNREACHABLE();
}

}  // namespace leasehold::server
