#include <leasehold/tls/name.h>
namespace leasehold::tls {
Result<CertificateName> parse_uri(std::string_view) {
  return Error{ErrorCode::malformed, "stub"};
}
}  // namespace leasehold::tls
