#include <leasehold/server/users/password.h>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <array>
#include <cstdint>
#include <optional>

namespace leasehold::server {
namespace {

constexpr std::uint64_t kN = std::uint64_t{1} << 14U;
constexpr std::uint64_t kR = 8;
constexpr std::uint64_t kP = 1;
constexpr std::uint64_t kMemoryMax = std::uint64_t{64} << 20U;
constexpr std::string_view kHead = "scrypt$14$8$1$";
constexpr std::size_t kSaltBytes = 16;
constexpr std::size_t kHashBytes = 32;
constexpr std::size_t kStoredBytes = kHead.size() + 2 * kSaltBytes + 1 + 2 * kHashBytes;

using Hash = std::array<unsigned char, kHashBytes>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string hex(const unsigned char* bytes, std::size_t count) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    out += kDigits[bytes[i] >> 4U];
    out += kDigits[bytes[i] & 15U];
  }
  return out;
}

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// False: no memory.
bool derive(std::string_view digest, std::string_view salt, Hash& hash) {
  return EVP_PBE_scrypt(digest.data(), digest.size(), bytes_of(salt), salt.size(), kN, kR, kP,
                        kMemoryMax, hash.data(), hash.size()) == 1;
}

}  // namespace

void wipe(std::string& text) {
  OPENSSL_cleanse(text.data(), text.size());
  text.clear();
}

std::string sha256_hex(std::string_view text) {
  Hash digest{};
  SHA256(bytes_of(text), text.size(), digest.data());
  return hex(digest.data(), digest.size());
}

bool is_sha256_hex(std::string_view text) {
  return text.size() == 2 * kHashBytes && is_hex(text);
}

std::string hash_password(std::string_view digest_hex) {
  std::array<unsigned char, kSaltBytes> random{};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) return {};
  // The salt is used as its text.
  const std::string salt = hex(random.data(), random.size());
  Hash hash{};
  if (!derive(digest_hex, salt, hash)) return {};
  return fmt::format("{}{}${}", kHead, salt, hex(hash.data(), hash.size()));
}

bool is_password_hash(std::string_view text) {
  if (text.size() != kStoredBytes || text.substr(0, kHead.size()) != kHead) return false;
  const std::string_view rest = text.substr(kHead.size());
  return rest[2 * kSaltBytes] == '$' && is_hex(rest.substr(0, 2 * kSaltBytes)) &&
         is_hex(rest.substr(2 * kSaltBytes + 1));
}

bool password_matches(std::string_view stored, std::string_view digest_hex) {
  if (!is_password_hash(stored)) return false;
  Hash hash{};
  if (!derive(digest_hex, stored.substr(kHead.size(), 2 * kSaltBytes), hash)) return false;
  std::string text = hex(hash.data(), hash.size());
  const std::string_view expected = stored.substr(stored.size() - 2 * kHashBytes);
  const bool same = CRYPTO_memcmp(text.data(), expected.data(), expected.size()) == 0;
  wipe(text);
  OPENSSL_cleanse(hash.data(), hash.size());
  return same;
}

void spend_a_check() {
  Hash hash{};
  derive(sha256_hex(""), "00000000000000000000000000000000", hash);
}

std::string random_hex(std::size_t bits) {
  std::string bytes((bits + 7) / 8, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) !=
      1) {
    return {};
  }
  return hex(bytes_of(bytes), bytes.size()).substr(0, (bits + 3) / 4);
}

std::string keyed_digest(std::string_view key, std::string_view text) {
  Hash digest{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes_of(text), text.size(),
       digest.data(), &size);
  return {digest.begin(), digest.end()};
}

}  // namespace leasehold::server
