// How the commands of this program reach servers: by TLS, or plain.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/client/access.h>

#include <cstddef>
#include <string>

namespace leasehold::cli {

/// Takes the files that the flags name, and those that the environment names in LEASEHOLD_TLS_CA,
/// LEASEHOLD_TLS_CERT and LEASEHOLD_TLS_KEY where there is no flag. An authority turns TLS on.
/// Errors: io, invalid_argument, as sentences.
Result<void> set_access(client::Access::Files flags);

/// Of nodes with many groups: the one that the command is about.
void set_group(std::size_t number);
/// The one that has the key, unless set_group() was called.
void set_group_of(const std::string& key);

/// Of every connection of this process, which runs one command: plain until set_access().
const client::Access& access();

}  // namespace leasehold::cli
