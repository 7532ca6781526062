// The calls of a Group as values that are begun later: by a future, a coroutine or an executor of
// the host. A host that passes completions needs none of this.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/node/group.h>
#include <leasehold/raft/settings.h>

#include <functional>
#include <utility>

namespace leasehold::adapters {

/// A call that has not begun. It begins once: by as_future(), by co_await (awaitable.h) or by
/// async() (asio.h). The group outlives it.
template <class Answer>
class Call {
 public:
  using Completion = std::function<void(Answer)>;
  using Begin = std::function<void(Completion)>;

  explicit Call(Begin begin) : begin_(std::move(begin)) {}

  /// `done` is called once, on a thread of the node, or inside this when the replica is stopped.
  void begin(Completion done) && {
    // What holds this may end inside the call.
    const Begin begin = std::move(begin_);
    begin(std::move(done));
  }

 private:
  Begin begin_;
};

// Those of Group, with the same arguments; read_index() is Group::read().

inline Call<replica::ProposeResult> propose(node::Group& group, Bytes command,
                                            node::CallOptions options) {
  return Call<replica::ProposeResult>(
      [&group, command = std::move(command), options](replica::ProposeCompletion done) {
        group.propose(command, options, std::move(done));
      });
}

inline Call<replica::ReadResult> read_index(node::Group& group, raft::ReadMode mode,
                                            node::CallOptions options) {
  return Call<replica::ReadResult>([&group, mode, options](replica::ReadCompletion done) {
    group.read(mode, options, std::move(done));
  });
}

inline Call<replica::ReadResult> wait_applied(node::Group& group, raft::Index index,
                                              node::CallOptions options) {
  return Call<replica::ReadResult>([&group, index, options](replica::ReadCompletion done) {
    group.wait_applied(index, options, std::move(done));
  });
}

inline Call<node::MembersResult> change_members(node::Group& group, node::MemberEdits edits,
                                                node::CallOptions options) {
  return Call<node::MembersResult>(
      [&group, edits = std::move(edits), options](node::MembersCompletion done) {
        group.change_members(edits, options, std::move(done));
      });
}

inline Call<replica::SettingsResult> change_settings(node::Group& group,
                                                     const raft::SettingsEdit& edit,
                                                     node::CallOptions options) {
  return Call<replica::SettingsResult>([&group, edit, options](replica::SettingsCompletion done) {
    group.change_settings(edit, options, std::move(done));
  });
}

inline Call<replica::TransferResult> transfer_leadership(node::Group& group, raft::NodeId to,
                                                         node::CallOptions options) {
  return Call<replica::TransferResult>([&group, to, options](replica::TransferCompletion done) {
    group.transfer_leadership(to, options, std::move(done));
  });
}

inline Call<node::DrainResult> drain(node::Group& group, node::CallOptions options) {
  return Call<node::DrainResult>(
      [&group, options](node::DrainCompletion done) { group.drain(options, std::move(done)); });
}

inline Call<Result<replica::LogPart>> read_log(node::Group& group, replica::LogReadFrom from,
                                               node::CallOptions options) {
  return Call<Result<replica::LogPart>>([&group, from, options](replica::LogReadCompletion done) {
    group.read_log(from, options, std::move(done));
  });
}

inline Call<Result<replica::LogCut>> cut_log(node::Group& group) {
  return Call<Result<replica::LogCut>>(
      [&group](replica::LogCutCompletion done) { group.cut_log(std::move(done)); });
}

inline Call<node::NodeStatus> status(node::Group& group) {
  return Call<node::NodeStatus>(
      [&group](std::function<void(node::NodeStatus)> done) { group.status(std::move(done)); });
}

}  // namespace leasehold::adapters
