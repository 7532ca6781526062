// Hashes, and how secrets are compared.
#pragma once

#include <string>
#include <string_view>

namespace leasehold::tls {

/// 32 bytes.
std::string sha256(std::string_view bytes);
/// In a time that does not depend on where they differ.
bool same_secret(std::string_view a, std::string_view b);
/// `count` bytes that nobody can guess. Ends the process if the system has none.
std::string random_secret(std::size_t count);
/// Overwrites it.
void wipe(std::string& secret);

}  // namespace leasehold::tls
