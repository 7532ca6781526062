// Ends expired things, by commands, in bounded rounds.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/node/group.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace leasehold::kv {

/// Proposes commands that a leader's clock has made due. One round waits for the one before,
/// because a slow group would only get the same commands again. Its proposals may outlive it.
class ExpiryRounds {
 public:
  /// Called with the number of things that ended, when the last command of a round is answered; on
  /// any thread.
  using Told = std::function<void(std::size_t ended)>;
  /// `timeout`: of a proposal.
  ExpiryRounds(node::Group& node, lease::Duration timeout) : node_(node), timeout_(timeout) {}

  bool under_way() const { return !round_.expired(); }
  /// Commands whose result is an Integer: how many ended. Does nothing while a round is under way.
  void propose(std::vector<Bytes> commands, Told told);

 private:
  struct Round;

  node::Group& node_;
  const lease::Duration timeout_;
  /// The completions hold it.
  std::weak_ptr<Round> round_;
};

}  // namespace leasehold::kv
