// The commands of the key-value store, and the only code that knows their bytes.
// Format: docs/formats/kv.md.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/kv/comparison.h>
#include <leasehold/kv/operation.h>
#include <leasehold/kv/reply.h>
#include <leasehold/kv/slot_commands.h>
#include <leasehold/kv/users.h>
#include <leasehold/raft/types.h>
#include <leasehold/replica/session_table.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::kv {

/// Limits. Checked when a command is made and again when it is decoded. A key may be empty.
inline constexpr std::size_t kKeyBytesMax = std::size_t{64} << 10U;
/// Keys, also deleted ones, that commands of users (ActAs) have written with a token.
inline constexpr std::size_t kFencesMax = std::size_t{1} << 20U;
inline constexpr std::size_t kValueBytesMax = std::size_t{16} << 20U;
/// Keys of one command.
inline constexpr std::size_t kCommandKeysMax = 65536;
/// A whole command, encoded. Pinned: a build with another limit would execute what others refuse.
inline constexpr std::size_t kCommandBytesMax = kValueBytesMax + kKeyBytesMax + 64;
/// An ImportKeys, encoded: the revisions, the time and the token of one key take 67 bytes beside
/// the key and its value. No build that knows only the limit above can read it.
inline constexpr std::size_t kImportBytesMax = kCommandBytesMax + 64;
/// Operations of one transaction, and keys that it watches.
inline constexpr std::size_t kOperationsMax = 65536;
/// Value bytes that one command returns, and value bytes that one transaction writes.
inline constexpr std::size_t kReplyBytesMax = std::size_t{64} << 20U;
inline constexpr std::size_t kWrittenBytesMax = std::size_t{64} << 20U;
/// Value bytes that a command loads (LoadAtMost); one that names few keys cannot exceed them.
inline constexpr std::size_t kLoadedBytesMax = std::size_t{128} << 20U;
inline constexpr std::size_t kFewKeys = kLoadedBytesMax / kValueBytesMax;
/// Bits of a value.
inline constexpr std::uint32_t kBitsMax = std::uint32_t{8} * kValueBytesMax;
/// Steps of one command or transaction: digits that are added, pieces of 64 bytes whose bits are
/// counted, pairs of bytes that are compared. Pinned, as all limits are that
/// decide what a command does.
inline constexpr std::uint64_t kStepsMax = std::uint64_t{1} << 24U;
/// Digits after the prefix of a sequential key: as many as the largest revision has. Pinned.
inline constexpr std::size_t kSequenceDigits = 20;
/// Leases that one command renews, lists or ends.
inline constexpr std::size_t kCommandLeasesMax = 4096;

/// "The key was last written by this revision"; 0: it does not exist.
struct Watched {
  std::string_view key;
  std::uint64_t mod_revision = 0;
};
/// Operations that see each other's effects and take effect together, if all watched revisions
/// match. Results: an array with one result for each, with an error for an operation that did
/// nothing; Nil when a watched revision does not match: then nothing was done. Errors: limit, and
/// nothing was done.
struct Transaction {
  std::vector<Watched> watched;
  std::vector<Operation> operations;
};

// The commands of sessions: exactly once (replica/session_table.h). They have no revision of their
// own; the command in Once has its usual one. Every error except one of Once's inner command says
// that nothing was done now.

/// Result: Integer, the new session's id. Errors: too_many_sessions.
struct OpenSession {};
/// Result: Ok. Errors: no_session.
struct CloseSession {
  replica::SessionId session;
};
/// Keeps a session from being idle. Result: Ok. Errors: no_session.
struct TouchSession {
  replica::SessionId session;
};
/// Closes a session that has seen no activity beyond `activity`. Result: Integer, 1 if it did, else
/// 0: there is no such session either, or it has seen some.
struct ExpireSession {
  replica::SessionId session;
  std::uint64_t activity = 0;
};
/// Executes a command unless it was executed under this number before. Result: that of the command,
/// byte for byte the same each time; an error of the command is a result. Errors: no_session,
/// sequence_answered, sequence_too_far, result_gone; and, which use up no number, those that the
/// command's bytes have without reading the store, and moved, also if it was executed before.
struct Once {
  replica::SessionId session;
  std::uint64_t sequence = 0;
  /// The client has the answers to all sequences below.
  std::uint64_t answered_below = 0;
  /// Encoded; none of those for sessions.
  std::string_view command;
};

/// A lease and its stamp, as the leader saw it.
struct SeenLease {
  grant::LeaseId id;
  std::uint64_t stamp = 0;
};
/// Ends leases whose time is over, with their keys, all in one revision. Proposed by the leader
/// that timed them, for its own term; each lease ends only if it was neither renewed in the log nor
/// granted again since, and none does unless this command is an entry of `term`: a leader of
/// another term has given them their whole time again. Once grant::kLeaseKeysMax keys have gone no
/// further lease ends: name the others again. Result: Integer, how many ended.
struct ExpireLeases {
  raft::Term term;
  std::vector<SeenLease> leases;
};

/// Writes a user if its record still has the version `expected` (0: if there is no such user): two
/// changes at once do not lose one. Result: Integer, the new version; Nil: it has another version,
/// and nothing was done. Errors: limit (there are kUsersMax users).
struct SetUser {
  std::string_view name;  ///< 1 to kUserNameBytesMax bytes
  std::uint64_t expected = 0;
  std::string_view rules;  ///< kUserRulesBytesMax bytes at most
};
/// Removes users and their sessions, all in one revision. Their leases last as long as they would:
/// a user that is made again under the same name is another one, and has none of them. Result:
/// Integer, how many of them there were.
struct DelUsers {
  std::vector<std::string_view> names;
};
/// Executes a command in the name of a user: the leases that it grants are that user's, and a lease
/// that is another user's is neither renewed nor revoked, and no key is attached to it. A lease
/// that was granted without a user is everybody's. The same holds for sessions: another user's is
/// not there. Result: that of the command. Errors: not_owner,
/// for the command or (of RenewLeases and RenewNamed) for one lease.
struct ActAs {
  std::string_view user;  ///< 1 to kUserNameBytesMax bytes
  bool others = false;    ///< the user may do all this with every lease
  /// Encoded; one of those for keys, leases and sessions (but Expire*), or Once.
  std::string_view command;
};

/// Executes a command unless the values of the keys that it names have more than `bytes` bytes
/// together, each key counted once; without it, few bytes of a command could keep every replica
/// busy for hours. Result: that of the command. Errors: limit, and nothing was done.
struct LoadAtMost {
  std::uint64_t bytes = 0;
  /// Encoded; one of those that ActAs executes, or ActAs.
  std::string_view command;
};

/// Every replica notes the sum of its state as of this entry (Comparison). Result: Ok.
struct CompareState {};
/// A replica says what its state is, for all others. Result: Ok; Nil: another node has sent it, and
/// nobody heard it.
struct ReportState {
  StateReport report;
};

using Command =
    std::variant<Set, Del, IncrBy, Append, SetRange, GetDel, MSet, Rename, GrantLease, RenewLeases,
                 RevokeLease, AttachKey, ExpireKey, DelEqual, SetSequential, WithNamedLease,
                 RenewNamed, IncrByFloat, Copy, SetBit, Get, Exists, MGet, StrLen, GetRange, Size,
                 LeaseInfo, LeaseList, KeyLease, GetBit, BitCount, Lcs, Transaction, OpenSession,
                 CloseSession, TouchSession, ExpireSession, Once, ExpireLeases, SetUser, DelUsers,
                 ActAs, LoadAtMost, CompareState, ReportState, BeginMove, CancelMove, FreezeMove,
                 ExpectSlots, ImportKeys, TakeSlots, LeaveSlots, DropKeys, ForgetSlots, RetryMove>;

/// Errors: invalid_argument when a limit is broken; the message names it.
Result<Bytes> encode_command(const Command& command);
/// The one decoder. Accepts exactly what encode_command makes. Views into `bytes`. Errors:
/// malformed, unsupported_format (with both numbers), invalid_argument (a limit is broken).
Result<Command> decode_command(std::string_view bytes);

/// Collects a transaction piece by piece, in its encoded form: the caller may free what it has
/// added.
class TransactionBuilder {
 public:
  /// Errors: invalid_argument when a limit is broken: of the operation, or of the whole.
  Result<void> add(const Operation& operation);
  Result<void> watch(const Watched& watched);
  std::size_t operations() const { return operations_; }
  std::size_t watched() const { return watched_; }
  std::size_t held_bytes() const { return watched_bytes_.capacity() + operation_bytes_.capacity(); }
  Bytes finish() const;

 private:
  Result<void> add(std::string_view piece, std::size_t pieces, std::string& to);
  std::string watched_bytes_;
  std::string operation_bytes_;
  std::size_t watched_ = 0;
  std::size_t operations_ = 0;
};

}  // namespace leasehold::kv
