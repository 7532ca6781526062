// Folders that only their owner may enter, and files that only their owner may read. The process's
// umask is the program's to set: nothing here reads or changes it.
#pragma once

#include <leasehold/base/result.h>

#include <cstddef>
#include <string>

namespace leasehold::storage {

/// For umask(), in a program that makes files whose mode it cannot choose: those of RocksDB.
inline constexpr unsigned kPrivateUmask = 077;
/// For the system calls that make a file or a folder.
inline constexpr unsigned kPrivateFileMode = 0600;
inline constexpr unsigned kPrivateFolderMode = 0700;

/// Makes the folder `path`, and the folders above it that are missing, each with
/// kPrivateFolderMode; their names are durable. If `path` is there, takes the rights of everybody
/// but the owner from it: an earlier version gave them. True: it had any.
///
/// Errors: invalid_argument (it belongs to another user, who could undo this), io.
Result<bool> make_private_folder(const std::string& path);

/// Takes the rights of everybody but the owner from all files and folders in `path`, and in the
/// folders there. Follows no symbolic link. Returns how many it changed. Only before others in this
/// process open files there, but another process may.
///
/// Errors: invalid_argument (one belongs to another user; `lost+found` directly in `path` may), io.
Result<std::size_t> tighten_content(const std::string& path);

/// Makes the names in the folder `path` durable. Errors: io.
Result<void> sync_folder(const std::string& path);

}  // namespace leasehold::storage
