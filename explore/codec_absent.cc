#include <leasehold/explore/codec.h>

namespace leasehold::explore {

Carrier through_codec() {
  return {};
}

}  // namespace leasehold::explore
