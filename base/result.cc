#include <leasehold/base/result.h>

namespace leasehold {

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::malformed: return "malformed";
    case ErrorCode::unsupported_format: return "unsupported_format";
    case ErrorCode::corrupted: return "corrupted";
    case ErrorCode::wrong_cluster: return "wrong_cluster";
    case ErrorCode::in_use: return "in_use";
    case ErrorCode::not_found: return "not_found";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::io: return "io";
    case ErrorCode::overloaded: return "overloaded";
    case ErrorCode::unavailable: return "unavailable";
    case ErrorCode::timed_out: return "timed_out";
    case ErrorCode::stopped: return "stopped";
    case ErrorCode::removed: return "removed";
    case ErrorCode::clock_disrupted: return "clock_disrupted";
  }
  LEASEHOLD_UNREACHABLE();
}

}  // namespace leasehold
