#include <leasehold/c/answers.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace leasehold::c {

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return LEASEHOLD_INVALID_ARGUMENT;
    case ErrorCode::malformed: return LEASEHOLD_MALFORMED;
    case ErrorCode::unsupported_format: return LEASEHOLD_UNSUPPORTED_FORMAT;
    case ErrorCode::corrupted: return LEASEHOLD_CORRUPTED;
    case ErrorCode::wrong_cluster: return LEASEHOLD_WRONG_CLUSTER;
    case ErrorCode::in_use: return LEASEHOLD_IN_USE;
    case ErrorCode::not_found: return LEASEHOLD_NOT_FOUND;
    case ErrorCode::unsupported: return LEASEHOLD_UNSUPPORTED;
    case ErrorCode::io: return LEASEHOLD_IO;
    case ErrorCode::overloaded: return LEASEHOLD_OVERLOADED;
    case ErrorCode::unavailable: return LEASEHOLD_UNAVAILABLE;
    case ErrorCode::timed_out: return LEASEHOLD_TIMED_OUT;
    case ErrorCode::stopped: return LEASEHOLD_STOPPED;
    case ErrorCode::removed: return LEASEHOLD_REMOVED;
    case ErrorCode::clock_disrupted: return LEASEHOLD_CLOCK_DISRUPTED;
  }
  return LEASEHOLD_IO;
}

int role_of(raft::Role role) {
  switch (role) {
    case raft::Role::follower: return LEASEHOLD_FOLLOWER;
    case raft::Role::pre_candidate: return LEASEHOLD_PRE_CANDIDATE;
    case raft::Role::candidate: return LEASEHOLD_CANDIDATE;
    case raft::Role::leader: return LEASEHOLD_LEADER;
  }
  return LEASEHOLD_FOLLOWER;
}

namespace {

/// A host may return any number.
ErrorCode code_of(int status) {
  switch (status) {
    case LEASEHOLD_CORRUPTED:
    case LEASEHOLD_MALFORMED: return ErrorCode::corrupted;
    case LEASEHOLD_UNSUPPORTED: return ErrorCode::unsupported;
    default: return ErrorCode::io;
  }
}

std::string hint(raft::NodeId leader) {
  return leader == raft::kNobody ? "no leader is known"
                                 : fmt::format("node {} leads", leader.value());
}

}  // namespace

int fill(leasehold_error* to, int status, const std::string& text) {
  if (to == nullptr) return status;
  to->status = status;
  const std::size_t size = std::min(text.size(), sizeof(to->text) - 1);
  std::memcpy(to->text, text.data(), size);
  to->text[size] = '\0';
  return status;
}

int fill(leasehold_error* to, const Error& error) {
  return fill(to, status_of(error.code), error.message);
}

Error error_of(int status, const leasehold_error& said, const char* who) {
  // Whatever a callback wrote there, it ends inside.
  const std::string_view text(said.text, strnlen(said.text, sizeof(said.text)));
  if (!text.empty()) return Error{code_of(status), std::string(text)};
  return Error{code_of(status), fmt::format("{} of the state machine returned {}", who, status)};
}

int fill_unanswered(leasehold_error* to, const replica::ProposeResult& result) {
  if (result.status == replica::ProposeStatus::unknown) {
    return fill(to, LEASEHOLD_UNKNOWN,
                "the command may have been executed, or may still be; " + hint(result.leader));
  }
  std::string why = "the command was not executed: try again; ";
  if (result.disk_full_at != raft::kNobody) {
    why += fmt::format("the disk of node {} is full; ", result.disk_full_at.value());
  } else if (result.overloaded) {
    why += "a queue is full; ";
  }
  return fill(to, LEASEHOLD_DROPPED, why + hint(result.leader));
}

int fill_unanswered(leasehold_error* to, const replica::ReadResult& result) {
  return fill(to, LEASEHOLD_DROPPED,
              "the read was not served: try again; " +
                  std::string(result.overloaded ? "a queue is full; " : "") + hint(result.leader));
}

}  // namespace leasehold::c

const char* leasehold_version(void) {
  return LEASEHOLD_VERSION;
}

void leasehold_error_set(leasehold_error* error, int status, const char* text) {
  leasehold::c::fill(error, status, text == nullptr ? "" : text);
}
