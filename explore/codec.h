// The codec of the wire, for --codec.
#pragma once

#include <leasehold/explore/bounds.h>

namespace leasehold::explore {

/// Encodes and decodes. Empty where the wire is not built, which the portable set leaves out.
Carrier through_codec();

}  // namespace leasehold::explore
