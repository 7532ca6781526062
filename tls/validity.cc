#include <leasehold/tls/openssl.h>
#include <leasehold/tls/validity.h>

#include <fmt/format.h>

#include <openssl/bio.h>
#include <openssl/pem.h>

#include <ctime>
#include <utility>

namespace leasehold::tls {

Result<std::int64_t> certificate_end(const std::string& path) {
  ERR_clear_error();
  const std::unique_ptr<BIO, FreeBy<BIO_free_all>> file(BIO_new_file(path.c_str(), "r"));
  if (!file) {
    return Error{ErrorCode::io,
                 fmt::format("cannot read the certificate {}: {}", path, openssl_problem())};
  }
  const CertificateHandle certificate(PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr));
  std::tm end{};
  if (!certificate || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: not a certificate: {}", path, openssl_problem())};
  }
  return static_cast<std::int64_t>(timegm(&end));
}

}  // namespace leasehold::tls
