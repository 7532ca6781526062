// Names a locked folder so that two processes know whether one lock keeps them apart.
#pragma once

#include <cstdint>

namespace leasehold::storage {

/// Of an open folder: equal for two processes only if they have locked the same folder under the
/// same kernel since it booted. Then one of them had ended when the other began. A copy of the
/// folder, the same disk at another machine, and the time after a reboot have other places: there
/// the kernel knows nothing of the other process.
///
/// 0: not known, because the lock of that file system is not the kernel's own (NFS and others give
/// a lock to another when they lose sight of its holder), or the kernel does not say what it takes.
std::uint64_t lock_place(int folder);

}  // namespace leasehold::storage
