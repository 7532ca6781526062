// OpenSSL's objects as owners, and its errors as text. Not for other rooms.
#pragma once

#include <leasehold/tls/name.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

namespace leasehold::tls {

template <auto Free>
struct FreeBy {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using SessionHandle = std::unique_ptr<SSL_SESSION, FreeBy<SSL_SESSION_free>>;
using CertificateHandle = std::unique_ptr<X509, FreeBy<X509_free>>;
using VerificationHandle = std::unique_ptr<X509_STORE_CTX, FreeBy<X509_STORE_CTX_free>>;

/// The one name of ours among the certificate's alternative names. None: there is none, or there
/// are two.
std::optional<CertificateName> name_in(const X509* certificate);

/// The certificate's serial number, hexadecimal.
std::string serial_text(const X509* certificate);

/// The first error that OpenSSL has noted on this thread, in its words; forgets all of them.
inline std::string openssl_problem() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "unknown reason";
  if (const char* reason = ERR_reason_error_string(code)) return reason;
  std::array<char, 256> text{};
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

}  // namespace leasehold::tls
