// The calls of a Group that wait for their answer, built on those that do not.
#include <leasehold/node/group.h>
#include <leasehold/node/node_traced.h>

#include <future>
#include <memory>
#include <utility>

namespace leasehold::node {

replica::ProposeResult Group::propose_and_wait(Bytes command, CallOptions options) {
  auto answer = std::make_shared<std::promise<replica::ProposeResult>>();
  std::future<replica::ProposeResult> answered = answer->get_future();
  propose(std::move(command), options,
          [answer](replica::ProposeResult result) { answer->set_value(std::move(result)); });
  return answered.get();
}

MembersResult Group::change_members_and_wait(MemberEdits edits, CallOptions options) {
  auto answer = std::make_shared<std::promise<MembersResult>>();
  std::future<MembersResult> answered = answer->get_future();
  change_members(std::move(edits), options,
                 [answer](MembersResult result) { answer->set_value(std::move(result)); });
  return answered.get();
}

replica::ReadResult Group::read_point(raft::ReadMode mode, CallOptions options) {
  return tracer_ == nullptr ? find_read_point(mode, options) : traced_read_point(mode, options);
}

replica::ReadResult Group::traced_read_point(raft::ReadMode mode, CallOptions options) {
  if (!tracer_->wants(options.trace)) {
    options.trace = &replica::kUntraced;
    return find_read_point(mode, options);
  }
  const replica::SpanPointer span =
      tracer_->make("leasehold.read_point", options.trace, clock().holder_now());
  span->add(replica::attribute("leasehold.read.mode", mode_text(mode)));
  // If the node is asked, its part is a span of its own.
  options.trace = &span->context();
  replica::ReadResult result = find_read_point(mode, options);
  const bool by_log = mode == raft::ReadMode::log;
  end_read(*span, clock().holder_now(), result, by_log ? "log" : basis_text(result.basis));
  return result;
}

replica::ReadResult Group::find_read_point(raft::ReadMode mode, CallOptions options) {
  const replica::LeaseView& view = lease_view();
  // Before the view is copied: what is committed between the two may be missing in the copy.
  auto began = raft::HolderInstant::earliest();
  if (options.max_age > lease::Duration(0)) {
    began = clock().holder_now();
    if (view.fresh_since().covers(began, options.max_age)) {
      replica::ReadResult result;
      result.index = view.applied();
      result.stale = true;
      return result;
    }
  }
  std::optional<raft::Index> leased;
  if (mode == raft::ReadMode::lease) leased = view.readable_index(clock());
  if (leased && view.applied() >= *leased) {
    view.fresh_since().raise(began);
    replica::ReadResult result;
    result.index = leased;
    result.basis = raft::ReadBasis::lease;
    return result;
  }
  auto answer = std::make_shared<std::promise<replica::ReadResult>>();
  std::future<replica::ReadResult> answered = answer->get_future();
  const auto done = [answer](const replica::ReadResult& result) { answer->set_value(result); };
  if (!leased) {
    read(mode, options, done);
    return answered.get();
  }
  // The lease has justified the read: the apply thread is behind, and asking a quorum would not
  // make it faster.
  wait_applied(*leased, options, done);
  replica::ReadResult result = answered.get();
  result.basis = raft::ReadBasis::lease;
  if (result.index) view.fresh_since().raise(began);
  return result;
}

}  // namespace leasehold::node
