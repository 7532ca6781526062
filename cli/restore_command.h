// `leasehold restore`: the data directory of a new group's member, made of a backup.
#pragma once

#include <leasehold/server/settings.h>

#include <string>

namespace leasehold::cli {

/// Makes settings.data_dir of the backup in the file `from`, and tells a person what it did. The
/// directory must not exist, be empty, or be what an interrupted restoration has left. Everything
/// of the backup is checked before anything is touched. Returns the exit status: 0, or 1 after an
/// error.
int run_restore(const server::ServeSettings& settings, const std::string& from);

/// Checks a backup to its last byte and tells what is in it. The exit status: 0, or 1.
int run_verify(const std::string& from);

}  // namespace leasehold::cli
