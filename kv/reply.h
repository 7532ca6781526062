// The results of commands of the key-value store, and the only code that knows their bytes. Format:
// docs/formats/kv.md.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace leasehold::kv {

/// Why a command was applied without effect. Pinned: the values are returned by replicas.
enum class ErrorKind : std::uint8_t {
  malformed = 1,           ///< the command's bytes do not follow their format
  unsupported_format = 2,  ///< made by a newer build
  limit = 3,               ///< a key, a value, the command or its answer is too large
  not_an_integer = 4,      ///< IncrBy: the value is not a decimal 64-bit integer
  overflow = 5,            ///< IncrBy, IncrByFloat: the sum is too large
  store_failed = 6,        ///< the store's disk failed: the outcome is unknown and the node stops
  no_such_key = 7,         ///< Rename
  no_session = 8,          ///< not executed now; if it was before the session ended, is unknown
  sequence_answered = 9,   ///< Once: the client has said that it has the answer; not executed now
  sequence_too_far =
      10,            ///< Once: too far ahead of the first sequence without an answer; not executed
  result_gone = 11,  ///< Once: executed before, and the result was too large to keep
  too_many_sessions = 12,  ///< OpenSession
  lease_taken = 13,        ///< GrantLease: the text names the lease that is in the way
  no_lease = 14,           ///< never granted, revoked or expired
  fenced = 15,             ///< the token is smaller than one that has written, or was never granted
  key_exists = 16,         ///< SetSequential
  not_owner = 17,          ///< ActAs: the lease is another user's
  moved = 18,         ///< a key, or the name of a lease, is not of this group now; not executed
  slot_busy = 19,     ///< of the commands that move slots: what is in the way
  not_a_number = 20,  ///< IncrByFloat: the value is not a decimal fraction
  slot_left = 21,     ///< Once: a key was not of this group when it came; never executed
};

// The results.

struct Ok {};
/// No such key, or a condition that does not hold.
struct Nil {};
struct Integer {
  std::int64_t value = 0;
};
struct ValueReply {
  Bytes value;
};
struct ErrorReply {
  ErrorKind kind = ErrorKind::malformed;
  std::string text;  ///< a sentence for a person
};
struct ArrayReply {
  std::vector<Bytes> items;  ///< replies, encoded; of values, Nils, integers, errors and arrays
};

using Reply = std::variant<Ok, Nil, Integer, ValueReply, ErrorReply, ArrayReply>;

/// Of a count or an id: at most 2^63 - 1.
inline Reply integer(std::uint64_t value) {
  return Integer{static_cast<std::int64_t>(value)};
}

Bytes encode_reply(const Reply& reply);
/// A value shares the allocation of `bytes`. Errors: malformed, unsupported_format.
Result<Reply> decode_reply(const Bytes& bytes);

}  // namespace leasehold::kv
