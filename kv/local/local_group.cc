#include <leasehold/kv/command_level.h>
#include <leasehold/kv/local/local_group.h>

#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>

namespace leasehold::kv {
namespace {

Error error_of(const kv::ErrorReply& reply) {
  switch (reply.kind) {
    case kv::ErrorKind::lease_taken: return {ErrorCode::in_use, reply.text};
    case kv::ErrorKind::no_lease: return {ErrorCode::not_found, reply.text};
    case kv::ErrorKind::store_failed: return {ErrorCode::timed_out, reply.text};
    default: return {ErrorCode::invalid_argument, reply.text};
  }
}

/// Whom to look at, for people.
std::string leader_hint(raft::NodeId leader) {
  if (leader == raft::kNobody) return "no leader is known";
  return fmt::format("node {} leads, as far as this node knows", leader.value());
}

}  // namespace

Result<kv::Reply> LocalGroup::execute(const kv::Command& command, lease::Duration timeout) const {
  auto encoded = kv::encode_for(command, node.lease_view().level());
  if (!encoded) return encoded.error();
  const replica::ProposeResult done = node.propose_and_wait(std::move(encoded).value(), timeout);
  switch (done.status) {
    case replica::ProposeStatus::committed: break;
    case replica::ProposeStatus::dropped:
      return Error{ErrorCode::unavailable, "nothing was done: " + leader_hint(done.leader)};
    case replica::ProposeStatus::unknown:
      return Error{ErrorCode::timed_out,
                   "it may have been executed, or may still be: " + leader_hint(done.leader)};
  }
  auto reply = kv::decode_reply(done.result);
  if (!reply) return reply.error();
  if (const auto* error = std::get_if<kv::ErrorReply>(&reply.value())) return error_of(*error);
  return reply;
}

Result<void> LocalGroup::wait_readable(lease::Duration timeout) const {
  const replica::ReadResult read = node.read_point(raft::ReadMode::lease, timeout);
  if (read.index) return {};
  return Error{ErrorCode::unavailable, "not readable: " + leader_hint(read.leader)};
}

}  // namespace leasehold::kv
