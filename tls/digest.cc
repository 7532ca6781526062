#include <leasehold/base/assert.h>
#include <leasehold/tls/digest.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

namespace leasehold::tls {

std::string sha256(std::string_view bytes) {
  std::string digest(EVP_MD_size(EVP_sha256()), '\0');
  unsigned int size = 0;
  const int done =
      EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), &size,
                 EVP_sha256(), nullptr);
  LEASEHOLD_ASSERT(done == 1 && size == digest.size());
  return digest;
}

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_secret(std::size_t count) {
  std::string secret(count, '\0');
  const int done =
      RAND_priv_bytes(reinterpret_cast<unsigned char*>(secret.data()), static_cast<int>(count));
  LEASEHOLD_ASSERT(done == 1);
  return secret;
}

void wipe(std::string& secret) {
  OPENSSL_cleanse(secret.data(), secret.size());
  secret.clear();
}

}  // namespace leasehold::tls
