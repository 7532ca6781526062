#include <leasehold/grant/ttl_warning.h>

namespace leasehold::grant {

const char* ttl_warning(lease::Duration ttl) {
  if (ttl < kTtlWarnedBelow) {
    return "below 3 s a holder loses its lease in an ordinary pause of its program or its network";
  }
  if (ttl > kTtlWarnedAbove) {
    return "above an hour a holder that dies keeps all others waiting for that long";
  }
  return nullptr;
}

}  // namespace leasehold::grant
