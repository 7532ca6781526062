// Why a leader refuses to transfer the leadership.
#pragma once

#include <leasehold/raft/types.h>

#include <cstdint>
#include <string>

namespace leasehold::raft {

/// Why a transfer is refused.
enum class TransferObstacle : std::uint8_t {
  not_leader,          ///< ask `node`, if it is known
  transfer_under_way,  ///< to `node`
  already_leads,
  not_a_voter,       ///< `node` is not a voter
  witness,           ///< `node` is a witness: it never leads for long
  nobody_to_follow,  ///< no other voter, witnesses excepted, has answered in this term
  too_late,          ///< of a driver: the caller's deadline had passed
};
struct TransferRefused {
  TransferObstacle obstacle = TransferObstacle::not_leader;
  NodeId node{};
  friend bool operator==(const TransferRefused&, const TransferRefused&) = default;
};
/// A sentence for a person that says what to do.
std::string text_of(const TransferRefused& refused);

}  // namespace leasehold::raft
