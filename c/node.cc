// A node's beginning and end, and what it says of itself.
#include <leasehold/c/answers.h>
#include <leasehold/c/leasehold.h>
#include <leasehold/c/node.h>
#include <leasehold/c/options.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <utility>

namespace leasehold::c {
namespace {

Result<std::unique_ptr<leasehold_node>> open(const leasehold_options& options,
                                             const leasehold_machine* machine,
                                             const leasehold_observer* observer) {
  auto opened = std::make_unique<leasehold_node>();
  auto made = Machine::make(machine);
  if (!made) return made.error();
  opened->machine = std::move(made).value();
  if (const auto taken = opened->observer.take(observer); !taken) return taken.error();
  auto node = node::Node::open(options.node, *opened->machine, opened->clock, opened->observer);
  if (!node) return node.error();
  opened->node = std::move(node).value();
  opened->node->on_failure(
      [&reports = opened->observer](const Error& error) { reports.on_failure(error); });
  return opened;
}

node::NodeStatus ask(leasehold_node& node) {
  auto answer = std::make_shared<std::promise<node::NodeStatus>>();
  std::future<node::NodeStatus> answered = answer->get_future();
  node.node->status([answer](node::NodeStatus status) { answer->set_value(std::move(status)); });
  return answered.get();
}

int null_argument(leasehold_error* error, const char* function) {
  return fill(error, LEASEHOLD_INVALID_ARGUMENT, fmt::format("{}: an argument is NULL", function));
}

void copy_text(const std::string& text, char* to, std::size_t size) {
  const std::size_t copied = std::min(text.size(), size - 1);
  std::memcpy(to, text.data(), copied);
  to[copied] = '\0';
}

leasehold_member member_of(const node::MemberStatus& member) {
  leasehold_member out = {};
  out.id = member.id.value();
  out.match = member.match.value();
  out.voter = member.voter ? 1 : 0;
  out.witness = member.witness ? 1 : 0;
  out.connected = member.connected ? 1 : 0;
  copy_text(member.address, out.address, sizeof(out.address));
  return out;
}

}  // namespace
}  // namespace leasehold::c

int leasehold_node_open(const leasehold_options* options, const leasehold_machine* machine,
                        const leasehold_observer* observer, leasehold_node** node,
                        leasehold_error* error) {
  if (options == nullptr || node == nullptr) {
    return leasehold::c::null_argument(error, "leasehold_node_open");
  }
  auto opened = leasehold::c::open(*options, machine, observer);
  *node = opened ? std::move(opened).value().release() : nullptr;
  return *node != nullptr ? LEASEHOLD_OK : leasehold::c::fill(error, opened.error());
}

void leasehold_node_close(leasehold_node* node) {
  delete node;
}

int leasehold_node_drain(leasehold_node* node, int64_t timeout_ns, leasehold_error* error) {
  using leasehold::node::DrainResult;
  if (node == nullptr) return leasehold::c::null_argument(error, "leasehold_node_drain");
  auto answer = std::make_shared<std::promise<DrainResult>>();
  std::future<DrainResult> answered = answer->get_future();
  node->node->drain(std::chrono::nanoseconds(timeout_ns),
                    [answer](const DrainResult& result) { answer->set_value(result); });
  const DrainResult result = answered.get();
  if (result.complete) return LEASEHOLD_OK;
  return leasehold::c::fill(
      error, LEASEHOLD_TIMED_OUT,
      fmt::format("{} calls still wait, and node {} leads", result.waiting, result.leader.value()));
}

int leasehold_node_state(leasehold_node* node, leasehold_state* state, leasehold_error* error) {
  if (node == nullptr || state == nullptr) {
    return leasehold::c::null_argument(error, "leasehold_node_state");
  }
  // The first version has all members that there are.
  if (state->size < sizeof(leasehold_state)) {
    return leasehold::c::fill(error, LEASEHOLD_INVALID_ARGUMENT,
                              "leasehold_state.size is not sizeof(leasehold_state)");
  }
  const leasehold::node::NodeStatus status = leasehold::c::ask(*node);
  leasehold_state now = {};
  now.size = state->size;
  now.id = status.id.value();
  now.term = status.term.value();
  now.leader = status.leader.value();
  now.role = leasehold::c::role_of(status.role);
  now.formed = status.formed ? 1 : 0;
  now.first = status.first.value();
  now.last = status.last.value();
  now.durable = status.durable.value();
  now.commit = status.commit.value();
  now.applied = status.applied.value();
  now.lease_left_ns = status.lease_left.count();
  now.members = status.members.size();
  *state = now;
  return LEASEHOLD_OK;
}

int leasehold_node_members(leasehold_node* node, leasehold_member* members, size_t capacity,
                           size_t* count, leasehold_error* error) {
  if (node == nullptr || count == nullptr || (members == nullptr && capacity > 0)) {
    return leasehold::c::null_argument(error, "leasehold_node_members");
  }
  const leasehold::node::NodeStatus status = leasehold::c::ask(*node);
  *count = status.members.size();
  for (std::size_t i = 0; i < std::min(capacity, status.members.size()); ++i) {
    members[i] = leasehold::c::member_of(status.members[i]);
  }
  return LEASEHOLD_OK;
}
