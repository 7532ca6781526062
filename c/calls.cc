// Commands, reads, and changes of the group.
#include <leasehold/c/answers.h>
#include <leasehold/c/leasehold.h>
#include <leasehold/c/node.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold::c {
namespace {

std::optional<raft::ReadMode> mode_of(int mode) {
  switch (mode) {
    case LEASEHOLD_READ_LEASE: return raft::ReadMode::lease;
    case LEASEHOLD_READ_QUORUM: return raft::ReadMode::quorum;
    case LEASEHOLD_READ_LOG: return raft::ReadMode::log;
    default: return std::nullopt;
  }
}

node::CallOptions options_of(int64_t timeout_ns) {
  return node::CallOptions(std::chrono::nanoseconds(timeout_ns));
}

/// The bytes are those of `result`.
leasehold_reply reply_of(const replica::ProposeResult& result) {
  leasehold_reply reply = {};
  if (!result.result.empty()) reply.bytes = const_cast<char*>(result.result.data());
  reply.size = result.result.size();
  reply.index = result.id.index.value();
  reply.term = result.id.term.value();
  reply.leader = result.leader.value();
  return reply;
}

/// False: there is no memory for the bytes.
bool copy(const replica::ProposeResult& result, leasehold_reply& to) {
  to = reply_of(result);
  if (to.bytes == nullptr) return true;
  to.bytes = std::malloc(to.size);
  if (to.bytes == nullptr) return false;
  std::memcpy(to.bytes, result.result.data(), to.size);
  return true;
}

leasehold_read_point point_of(const replica::ReadResult& result) {
  leasehold_read_point point = {};
  if (result.index) point.index = result.index->value();
  point.lease = !result.stale && result.basis == raft::ReadBasis::lease ? 1 : 0;
  point.stale = result.stale ? 1 : 0;
  point.leader = result.leader.value();
  return point;
}

std::optional<node::MemberEdit> edit_of(int change, uint64_t id, const char* address) {
  using What = node::MemberEdit::What;
  node::MemberEdit edit;
  edit.id = raft::NodeId(id);
  if (address != nullptr) edit.address = address;
  switch (change) {
    case LEASEHOLD_ADD_WITNESS: edit.witness = true; [[fallthrough]];
    case LEASEHOLD_ADD: edit.what = What::add; break;
    case LEASEHOLD_PROMOTE: edit.what = What::promote; break;
    case LEASEHOLD_DEMOTE: edit.what = What::demote; break;
    case LEASEHOLD_REMOVE: edit.what = What::remove; break;
    case LEASEHOLD_MOVE: edit.what = What::move; break;
    default: return std::nullopt;
  }
  return edit;
}

int invalid(leasehold_error* error, const char* text) {
  return fill(error, LEASEHOLD_INVALID_ARGUMENT, text);
}

}  // namespace
}  // namespace leasehold::c

using leasehold::Bytes;
using leasehold::replica::ProposeResult;
using leasehold::replica::ProposeStatus;
using leasehold::replica::ReadResult;

void leasehold_reply_clear(leasehold_reply* reply) {
  if (reply == nullptr) return;
  std::free(reply->bytes);
  *reply = {};
}

int leasehold_propose(leasehold_node* node, const void* command, size_t size, int64_t timeout_ns,
                      leasehold_reply* reply, leasehold_error* error) {
  if (reply != nullptr) *reply = {};
  if (node == nullptr || (command == nullptr && size > 0)) {
    return leasehold::c::invalid(error, "leasehold_propose: an argument is NULL");
  }
  const ProposeResult result =
      node->node->propose_and_wait(Bytes(std::string_view(static_cast<const char*>(command), size)),
                                   leasehold::c::options_of(timeout_ns));
  if (reply != nullptr && !leasehold::c::copy(result, *reply)) {
    return leasehold::c::fill(error, LEASEHOLD_UNKNOWN,
                              "there is no memory for the result; the command may be executed");
  }
  if (result.status == ProposeStatus::committed) return LEASEHOLD_OK;
  return leasehold::c::fill_unanswered(error, result);
}

void leasehold_propose_async(leasehold_node* node, const void* command, size_t size,
                             int64_t timeout_ns, leasehold_proposed done, void* context) {
  if (node == nullptr || done == nullptr || (command == nullptr && size > 0)) {
    const leasehold_reply none = {};
    if (done != nullptr) done(context, LEASEHOLD_INVALID_ARGUMENT, &none);
    return;
  }
  node->node->propose(Bytes(std::string_view(static_cast<const char*>(command), size)),
                      leasehold::c::options_of(timeout_ns),
                      [done, context](const ProposeResult& result) {
                        const leasehold_reply reply = leasehold::c::reply_of(result);
                        const int status = result.status == ProposeStatus::committed
                                               ? LEASEHOLD_OK
                                               : leasehold::c::fill_unanswered(nullptr, result);
                        done(context, status, &reply);
                      });
}

int leasehold_read(leasehold_node* node, int mode, int64_t timeout_ns, int64_t max_age_ns,
                   leasehold_read_point* point, leasehold_error* error) {
  const auto wanted = leasehold::c::mode_of(mode);
  if (node == nullptr) return leasehold::c::invalid(error, "leasehold_read: the node is NULL");
  if (!wanted) {
    return leasehold::c::invalid(error, "leasehold_read: the mode is none of leasehold_read_mode");
  }
  auto options = leasehold::c::options_of(timeout_ns);
  options.max_age = std::chrono::nanoseconds(max_age_ns);
  const ReadResult result = node->node->read_point(*wanted, options);
  if (point != nullptr) *point = leasehold::c::point_of(result);
  return result.index ? LEASEHOLD_OK : leasehold::c::fill_unanswered(error, result);
}

void leasehold_read_async(leasehold_node* node, int mode, int64_t timeout_ns, int64_t max_age_ns,
                          leasehold_may_read done, void* context) {
  const auto wanted = leasehold::c::mode_of(mode);
  if (node == nullptr || done == nullptr || !wanted) {
    const leasehold_read_point none = {};
    if (done != nullptr) done(context, LEASEHOLD_INVALID_ARGUMENT, &none);
    return;
  }
  auto options = leasehold::c::options_of(timeout_ns);
  options.max_age = std::chrono::nanoseconds(max_age_ns);
  node->node->read(*wanted, options, [done, context](const ReadResult& result) {
    const leasehold_read_point point = leasehold::c::point_of(result);
    done(context, result.index ? LEASEHOLD_OK : LEASEHOLD_DROPPED, &point);
  });
}

int leasehold_change_member(leasehold_node* node, int change, uint64_t id, const char* address,
                            int64_t timeout_ns, leasehold_error* error) {
  using leasehold::replica::GroupCallStatus;
  if (node == nullptr) {
    return leasehold::c::invalid(error, "leasehold_change_member: the node is NULL");
  }
  const auto edit = leasehold::c::edit_of(change, id, address);
  if (!edit || id == 0) {
    return leasehold::c::invalid(
        error, "leasehold_change_member: the change or the node's number is wrong");
  }
  const leasehold::node::MembersResult result =
      node->node->change_members_and_wait({*edit}, leasehold::c::options_of(timeout_ns));
  switch (result.status) {
    case GroupCallStatus::done: return LEASEHOLD_OK;
    case GroupCallStatus::refused:
      return leasehold::c::fill(error, result.retryable ? LEASEHOLD_DROPPED : LEASEHOLD_REFUSED,
                                result.reason);
    default: return leasehold::c::fill(error, LEASEHOLD_UNKNOWN, result.reason);
  }
}

int leasehold_cut_log(leasehold_node* node, leasehold_error* error) {
  using Cut = leasehold::Result<leasehold::replica::LogCut>;
  if (node == nullptr) return leasehold::c::invalid(error, "leasehold_cut_log: the node is NULL");
  auto answer = std::make_shared<std::promise<Cut>>();
  std::future<Cut> answered = answer->get_future();
  node->node->cut_log([answer](Cut cut) { answer->set_value(std::move(cut)); });
  const Cut cut = answered.get();
  return cut ? LEASEHOLD_OK : leasehold::c::fill(error, cut.error());
}

int leasehold_transfer(leasehold_node* node, uint64_t to, int64_t timeout_ns,
                       leasehold_error* error) {
  using leasehold::replica::GroupCallStatus;
  using leasehold::replica::TransferResult;
  if (node == nullptr) return leasehold::c::invalid(error, "leasehold_transfer: the node is NULL");
  auto answer = std::make_shared<std::promise<TransferResult>>();
  std::future<TransferResult> answered = answer->get_future();
  node->node->transfer_leadership(
      leasehold::raft::NodeId(to), leasehold::c::options_of(timeout_ns),
      [answer](const TransferResult& result) { answer->set_value(result); });
  const TransferResult result = answered.get();
  switch (result.status) {
    case GroupCallStatus::done: return LEASEHOLD_OK;
    case GroupCallStatus::refused:
      return leasehold::c::fill(error, LEASEHOLD_DROPPED,
                                result.refused ? text_of(*result.refused) : "it was refused");
    case GroupCallStatus::failed:
      return leasehold::c::fill(error, LEASEHOLD_DROPPED,
                                "the target did not become the leader in time: try again");
    default:
      return leasehold::c::fill(error, LEASEHOLD_UNKNOWN, "the time was over before it ended");
  }
}
