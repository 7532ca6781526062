#include <leasehold/tls/openssl.h>
#include <leasehold/tls/session_end.h>

#include <openssl/asn1.h>

#include <memory>

namespace leasehold::tls {

namespace {

using TimeHandle = std::unique_ptr<ASN1_TIME, FreeBy<ASN1_TIME_free>>;

/// The earlier one, as text: texts of this form are ordered as their times.
void lower_to(std::string& end, const ASN1_TIME* time) {
  using WholeHandle = std::unique_ptr<ASN1_GENERALIZEDTIME, FreeBy<ASN1_GENERALIZEDTIME_free>>;
  const WholeHandle whole(time == nullptr ? nullptr : ASN1_TIME_to_generalizedtime(time, nullptr));
  if (!whole) return;
  std::string text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(whole.get())),
                   static_cast<std::size_t>(ASN1_STRING_length(whole.get())));
  if (end.empty() || text < end) end = std::move(text);
}

}  // namespace

std::string end_of_proof(const SSL* ssl, const Context& context) {
  const STACK_OF(X509)* chain = SSL_get0_verified_chain(ssl);
  if (chain == nullptr) return {};
  std::string end = context.revoked_end();
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    lower_to(end, X509_get0_notAfter(sk_X509_value(chain, i)));
  }
  return end;
}

std::string end_of_lists(X509_STORE* store) {
  std::string end;
  const STACK_OF(X509_OBJECT)* all = X509_STORE_get0_objects(store);
  for (int i = 0; i < sk_X509_OBJECT_num(all); ++i) {
    const X509_CRL* list = X509_OBJECT_get0_X509_CRL(sk_X509_OBJECT_value(all, i));
    if (list != nullptr) lower_to(end, X509_CRL_get0_nextUpdate(list));
  }
  return end;
}

bool has_ended(std::string_view end, const Context& context) {
  if (end.empty()) return false;
  const TimeHandle time(ASN1_TIME_new());
  if (!time || ASN1_TIME_set_string(time.get(), std::string(end).c_str()) != 1) return true;
  // The instant for which a full handshake would judge.
  X509_VERIFY_PARAM* judging = SSL_CTX_get0_param(context.native());
  auto instant = X509_VERIFY_PARAM_get_time(judging);
  const bool given = (X509_VERIFY_PARAM_get_flags(judging) & X509_V_FLAG_USE_CHECK_TIME) != 0;
  return X509_cmp_time(time.get(), given ? &instant : nullptr) <= 0;
}

}  // namespace leasehold::tls
