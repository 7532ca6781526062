// The steps of `leasehold pool balance` and `drain`, one after the other.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/cli/pool_view.h>
#include <leasehold/client/resp_client.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace leasehold::cli {

struct PoolOptions {
  std::string action;
  std::vector<std::string> servers;
  PoolWishes wishes;
  raft::NodeId drained;                           ///< by `drain`; else kNobody
  std::size_t moves = 2;                          ///< into or out of a node at a time
  client::RespClient::Timeout look{5000};         ///< for the answers of the servers
  client::RespClient::Timeout patience{120'000};  ///< without any progress
  bool json = false;
};

/// A command for the leader of a group.
struct PoolStep {
  raft::GroupId group;
  std::vector<std::string> command;
  std::string text;           ///< for a person
  raft::NodeId added;         ///< the node that is added; kNobody: none
  raft::NodeId instead_of{};  ///< placement::Step::instead_of
};

struct NextSteps {
  std::vector<PoolStep> steps;
  std::vector<std::string> reasons;  ///< what cannot be done
  bool waits = false;                ///< a learner has not caught up, or a change is under way
};

/// `leaving`: as for pool_of(). Errors: invalid_argument.
Result<NextSteps> plan_of(const PoolView& view, const PoolOptions& options,
                          const std::map<raft::GroupId, raft::NodeId>& leaving);

/// Each node that has no replica of a group, and knows other nodes than have one, is given them.
void tell_places(const PoolView& view, client::RespClient::Timeout timeout);

/// Makes step after step, and says each. Returns an exit status.
int balance_pool(const PoolOptions& options);

}  // namespace leasehold::cli
