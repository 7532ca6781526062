// A backup becomes a file.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/replica/state_machine.h>

#include <cstdint>
#include <functional>
#include <string>

namespace leasehold::server {

/// Writes the manifest and the archive to the file `fresh`, syncs it, and gives it the name `path`,
/// durably; both are in one folder. `step` gets the bytes of the archive so far, and says whether
/// to go on. Returns the bytes of the file. Errors: in_use (`path` exists), stopped (`step` said
/// no), io, and those of the archive; `fresh` may be left then.
Result<std::uint64_t> write_backup_file(const std::string& manifest,
                                        const replica::Snapshot& archive, const std::string& fresh,
                                        const std::string& path,
                                        const std::function<bool(std::uint64_t bytes)>& step);

}  // namespace leasehold::server
