#include <leasehold/tls/certificates.h>
#include <leasehold/tls/openssl.h>

#include <fmt/format.h>

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

#include <memory>
#include <string>
#include <utility>

namespace leasehold::tls {

namespace {

using StoreHandle = std::unique_ptr<X509_STORE, FreeBy<X509_STORE_free>>;
using PemHandle = std::unique_ptr<BIO, FreeBy<BIO_free_all>>;
struct FreeStack {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_pop_free(stack, X509_free); }
};
using StackHandle = std::unique_ptr<STACK_OF(X509), FreeStack>;

Error not_in_pem(const std::string& path, const char* what) {
  const std::string problem = openssl_problem();
  return Error{ErrorCode::invalid_argument, fmt::format("{}: {}: {}", path, what, problem)};
}

}  // namespace

Result<void> check_chain(const CertificateFiles& files) {
  ERR_clear_error();
  const PemHandle file(BIO_new_file(files.certificate.c_str(), "r"));
  if (!file) return not_in_pem(files.certificate, "cannot be read");
  const CertificateHandle leaf(PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr));
  if (!leaf) return not_in_pem(files.certificate, "not a certificate");
  const StackHandle between(sk_X509_new_null());
  while (X509* next = PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr)) {
    sk_X509_push(between.get(), next);
  }
  ERR_clear_error();  // the end of the file

  const StoreHandle store(X509_STORE_new());
  if (X509_STORE_load_locations(store.get(), files.authority.c_str(), nullptr) != 1) {
    return not_in_pem(files.authority, "not the certificate of an authority");
  }
  unsigned long flags = X509_V_FLAG_NO_CHECK_TIME;
  if (!files.revoked.empty()) {
    X509_LOOKUP* lookup = X509_STORE_add_lookup(store.get(), X509_LOOKUP_file());
    if (X509_load_crl_file(lookup, files.revoked.c_str(), X509_FILETYPE_PEM) < 1) {
      return not_in_pem(files.revoked, "not a list of revoked certificates");
    }
    flags |= X509_V_FLAG_CRL_CHECK;
  }
  const VerificationHandle judge(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(judge.get(), store.get(), leaf.get(), between.get()) != 1) {
    return not_in_pem(files.certificate, "cannot be judged");
  }
  X509_STORE_CTX_set_flags(judge.get(), flags);
  if (X509_verify_cert(judge.get()) == 1) return {};
  const int code = X509_STORE_CTX_get_error(judge.get());
  ERR_clear_error();
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} does not follow from {}: {}", files.certificate, files.authority,
                           X509_verify_cert_error_string(code))};
}

}  // namespace leasehold::tls
