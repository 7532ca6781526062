// A reply's place in a session's line.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/lease/instant.h>
#include <leasehold/raft/types.h>
#include <leasehold/replica/lease_view.h>
#include <leasehold/replica/span.h>
#include <leasehold/server/front/command_spec.h>
#include <leasehold/server/front/joined_reply.h>
#include <leasehold/server/front/multi.h>
#include <leasehold/server/front/read_policy.h>
#include <leasehold/server/front/served_groups.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::server {

enum class PlaceKind : std::uint8_t { read, write, other };
enum class PlaceState : std::uint8_t {
  waiting,
  granted,  ///< a read that may be made now; it is made when its turn in the line comes
  done,     ///< `reply` is the answer
};

struct Place {
  PlaceKind kind = PlaceKind::other;
  PlaceState state = PlaceState::waiting;
  bool silent = false;                ///< the client does not want the reply
  ReplyForm form = ReplyForm::plain;  ///< of a write
  const CommandSpec* spec = nullptr;
  const ServedGroup* group = nullptr;
  std::chrono::nanoseconds begun{0};
  replica::SpanPointer span;       ///< of the command; null: it is not recorded
  std::size_t bytes = 0;           ///< that it holds: of the command, later of the reply
  std::string key;                 ///< the first one, cut, for the slow log
  std::vector<std::string> words;  ///< of a read
  std::uint64_t users = 0;         ///< of a read: by which its rights were looked at
  ReadPolicy policy;               ///< of a read
  std::uint64_t stay = 0;          ///< of a read: ServedGroup::stay() before it was judged
  std::size_t groups_left = 0;     ///< of a read in each group: behind the present one
  JoinedReply earlier;             ///< of a read in each group: the replies of those before
  TransactionParts parts;          ///< of a transaction
  std::string reply;
  /// Of its keys, where there are many groups.
  std::optional<std::uint32_t> slot;
  Bytes command;  ///< of a write that another group may execute as well, when its slot has moved
};

/// Reads that are justified together.
struct ReadBatch {
  const ServedGroup* group = nullptr;
  std::vector<std::uint64_t> places;  ///< their numbers
  bool waited = false;                ///< valid under the lease, but apply lagged
  raft::ReadMode mode = raft::ReadMode::lease;
  /// For FreshSince: earliest() if no read of the batch asked for the age of the state.
  lease::HolderInstant began = lease::HolderInstant::earliest();
  /// Of the replica that was asked: when the answer is here, the group may have another one.
  const replica::LeaseView* view = nullptr;
  ReadNote note;              ///< of the last of them
  replica::SpanPointer span;  ///< of one of them; null: none has one
};

}  // namespace leasehold::server
