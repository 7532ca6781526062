#include <leasehold/tls/openssl.h>

#include <openssl/bn.h>
#include <openssl/x509v3.h>

#include <string_view>

namespace leasehold::tls {

std::optional<CertificateName> name_in(const X509* certificate) {
  using NamesHandle = std::unique_ptr<GENERAL_NAMES, FreeBy<GENERAL_NAMES_free>>;
  const NamesHandle names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::optional<CertificateName> found;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* text = name->d.uniformResourceIdentifier;
    const std::string_view uri(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                               static_cast<std::size_t>(ASN1_STRING_length(text)));
    const Result<CertificateName> parsed = parse_uri(uri);
    if (!parsed.ok()) continue;
    if (found) return std::nullopt;
    found = parsed.value();
  }
  return found;
}

std::string serial_text(const X509* certificate) {
  using NumberHandle = std::unique_ptr<BIGNUM, FreeBy<BN_free>>;
  const NumberHandle number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  char* digits = number ? BN_bn2hex(number.get()) : nullptr;
  std::string text = digits == nullptr ? "" : digits;
  OPENSSL_free(digits);
  return text;
}

}  // namespace leasehold::tls
