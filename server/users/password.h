// Passwords: how they are stored and compared. The one place of the client port that uses a library
// of cryptography for them.
//
// A password is stored as scrypt of its SHA-256 digest, with a random salt:
//   scrypt$14$8$1$SALT$HASH    log2(N), r, p, then 16 and 32 bytes in hexadecimal
// The digest comes between, so that a client may also give the digest alone (#DIGEST in a rule).
// A check costs 16 MiB and some 50 ms: it never runs on a thread of connections.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace leasehold::server {

/// The longest password that is looked at.
inline constexpr std::size_t kPasswordBytesMax = 4096;

/// Overwrites `text` and empties it.
void wipe(std::string& text);
/// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view text);
bool is_sha256_hex(std::string_view text);
/// The stored form of a digest, with a salt of its own. Slow. Empty: the system has no randomness
/// or no memory.
std::string hash_password(std::string_view digest_hex);
/// Whether the text is a stored form with the costs that this build uses.
bool is_password_hash(std::string_view text);
/// Whether the digest is that of the stored password. Slow; takes the same time for each digest.
bool password_matches(std::string_view stored, std::string_view digest_hex);
/// As long as password_matches() takes: for a user without a password.
void spend_a_check();
/// `bits` random bits in hexadecimal, rounded up to a digit. Empty: the system has no randomness.
std::string random_hex(std::size_t bits);
/// HMAC-SHA256, 32 bytes.
std::string keyed_digest(std::string_view key, std::string_view text);

}  // namespace leasehold::server
