// Until when a session may be continued: as long as a full handshake would still be believed.
//
// Under one context only time can change that: other certificates or lists of revoked ones make
// another context, which knows no session of this one. Not for other rooms.
#pragma once

#include <leasehold/tls/context.h>

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <string>
#include <string_view>

namespace leasehold::tls {

/// When the first of the certificates ends that a full handshake has verified, or the first list of
/// revoked ones: "20261231235959Z". Empty: the other side has shown none.
std::string end_of_proof(const SSL* ssl, const Context& context);
/// The same of the lists of revoked certificates in `store`. Empty: there is none.
std::string end_of_lists(X509_STORE* store);
/// Whether that is over. What is no time is over; empty never is.
bool has_ended(std::string_view end, const Context& context);

}  // namespace leasehold::tls
