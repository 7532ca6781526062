// Exactly once: a replicated state machine's memory of its clients (dissertation 6.3).
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/base/strong.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::replica {

/// One client's numbering of its commands. Ids rise and are never used again, also not in a group
/// that was restored from a backup. 0: none.
using SessionId = StrongInt<struct SessionIdTag>;

// The limits are constants, not settings, because all replicas have to decide the same. Together
// they allow some 160 MiB.

/// Sessions that are open.
inline constexpr std::size_t kSessionsMax = 10'000;
/// Of one owner: no user takes the last quarter from the others.
inline constexpr std::size_t kSessionsOfOwnerMax = kSessionsMax / 4 * 3;
inline constexpr std::size_t kSessionOwnerBytesMax = 128;
/// How far a sequence may be ahead of the oldest one that is not answered yet.
inline constexpr std::uint64_t kSessionWindow = 128;
/// Bytes of the results that are kept for one session. Beyond it those of the lowest sequences are
/// forgotten, and a single larger one is never kept: their commands are not executed again, but a
/// repetition does not get the result.
inline constexpr std::size_t kSessionResultBytesMax = std::size_t{16} << 10U;

/// A part of a state machine's replicated state: give it to snapshots, and make it durable together
/// with what the commands change. A client opens a session, numbers its commands from 1 on, and
/// repeats one under its number as often as it likes, at any node; the machine executes it once and
/// gives every repetition the same result:
///
///     if (const auto known = table.begin(session, sequence, answered_below); known.execute) {
///       result = execute(command);
///       table.finish(session, sequence, result);
///     } else {
///       result = /* known.verdict, known.result */;
///     }
///
/// Every method is a function of the table and its arguments, so replicas that call the same ones
/// in the same order agree. Not thread-safe.
class SessionTable {
 public:
  enum class Verdict : std::uint8_t {
    execute,        ///< for the first time: execute it, then call finish()
    repeated,       ///< executed before, with `result`
    result_gone,    ///< executed before; its result was too large to keep
    answered,       ///< below the sequences whose answers the client still needs
    too_far_ahead,  ///< kSessionWindow or more beyond that: not executed
    no_session,     ///< never opened, closed or expired: not executed now, perhaps earlier
                    ///< (or another user's)
  };
  struct Begun {
    Verdict verdict = Verdict::no_session;
    Bytes result;
  };
  struct Session {
    SessionId id;
    /// Counts the commands that named the session. While it does not change the session is idle.
    std::uint64_t activity = 0;
    std::size_t results = 0;  ///< remembered, those that are gone included
    std::string owner = {};   ///< the user that opened it; empty: everybody's
  };

  /// `owner`: at most kSessionOwnerBytesMax bytes; empty: it is everybody's. The id is above
  /// `above`. None: kSessionsMax are open, or kSessionsOfOwnerMax of this owner.
  std::optional<SessionId> open(std::string_view owner = {}, std::uint64_t above = 0);
  /// Whether there is such a session and it is `user`'s, or everybody's.
  bool is_for(SessionId id, std::string_view user) const;
  std::size_t size_of(std::string_view owner) const;
  /// Those of an owner, who is not empty.
  std::vector<SessionId> of(std::string_view owner) const;
  /// False: there is no such session.
  bool close(SessionId id);
  /// Only counts as activity. False: there is no such session.
  bool touch(SessionId id);
  /// Closes the session if it has seen no activity beyond `activity`. So a leader that has seen it
  /// idle, by its own clock, can propose this, and a command that comes first wins.
  bool expire(SessionId id, std::uint64_t activity);

  /// Judges a command. The client has the answers to all sequences below `answered_below`, so these
  /// are forgotten; a client that sends one command after the other names `sequence` itself.
  Begun begin(SessionId id, std::uint64_t sequence, std::uint64_t answered_below);
  /// After begin() said execute, and before any other call. `result` is not empty.
  void finish(SessionId id, std::uint64_t sequence, Bytes result);

  std::size_t size() const { return sessions_.size(); }
  std::vector<Session> list() const;

  // The bytes of the state, piece by piece: docs/formats/sessions.md.

  /// The highest id that was ever given.
  SessionId newest() const { return newest_; }
  /// None: no such session.
  std::optional<Bytes> encode(SessionId id) const;
  /// Into an empty table: first the newest id, then each session. Errors: malformed,
  /// unsupported_format; the table is as it was then.
  void restore_newest(SessionId newest) { newest_ = newest; }
  Result<void> restore(SessionId id, std::string_view bytes);
  /// The whole table as one piece, for a machine that keeps its state in one.
  Bytes encode_all() const;
  static Result<SessionTable> decode_all(std::string_view bytes);

  friend bool operator==(const SessionTable&, const SessionTable&) = default;

 private:
  struct Entry {
    std::uint64_t activity = 0;
    /// Everything below is executed or abandoned, and its result is not kept.
    std::uint64_t answered_below = 1;
    /// Results at and above it, by sequence; empty: gone.
    std::map<std::uint64_t, Bytes> results;
    /// Invariant: the sum over `results`, at most kSessionResultBytesMax.
    std::size_t bytes = 0;
    std::string owner = {};
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  SessionId newest_;
  std::map<SessionId, Entry> sessions_;
  /// Invariant: how many of sessions_ each owner has; no owner without one.
  std::map<std::string, std::size_t, std::less<>> of_owner_;
};

}  // namespace leasehold::replica
