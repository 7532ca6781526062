// One connection to one node's client port, as any client of Redis has it: blocking, with
// deadlines.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/client/access.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::tls {
class Stream;
}

namespace leasehold::client {

/// One reply. Maps are arrays of twice as many values.
struct RespValue {
  /// push: an array that is not a reply.
  enum class Kind : std::uint8_t { simple, error, integer, bulk, null, array, push };
  Kind kind = Kind::null;
  std::string text;  ///< simple, error (first word included), bulk
  std::int64_t integer = 0;
  std::vector<RespValue> items;

  /// For an integer that is never below 0: a revision, an id, a token.
  std::uint64_t number() const { return static_cast<std::uint64_t>(integer); }
  bool is_error(std::string_view first_word) const {
    return kind == Kind::error && text.substr(0, text.find(' ')) == first_word;
  }
  /// "The command was not executed": another server may take it.
  bool not_executed() const {
    return is_error("NOLEADER") || is_error("TRYAGAIN") || is_error("WITNESS") ||
           is_error("MOVED") || is_error("CLUSTERDOWN");
  }
};

/// A reply that this request cannot have.
inline Error unexpected(const RespValue& reply) {
  return {ErrorCode::malformed, "an answer of an unexpected kind: " + reply.text};
}

/// The limits of a reply: no node may send more.
inline constexpr std::size_t kReplyBytesMax = 64U << 20U;
inline constexpr int kReplyDepthMax = 8;

/// Reads one reply from the front of `bytes`. Returns its length; 0 if it is not complete yet.
/// Errors: malformed.
Result<std::size_t> parse_reply(std::string_view bytes, RespValue& value);

/// Who a client is for the servers. Without a user: the default user.
struct Login {
  std::string user;
  std::string password;
};

/// One TCP connection. Every call has a deadline. After an error the connection is of no use.
class RespClient {
 public:
  using Timeout = std::chrono::milliseconds;

  /// `address` is host:port. Errors: invalid_argument (or the server refuses the login or the
  /// group), unavailable (no process listens, out of reach, or the two do not believe each other),
  /// timed_out.
  static Result<RespClient> connect(const std::string& address, Timeout timeout,
                                    const Access& access = {});
  /// For every connection of this process that is made from here on. Call it before other threads
  /// connect.
  static void log_in_as(Login login);
  /// What log_in_as() was given: for connections of another kind.
  static const Login& login();
  ~RespClient();
  RespClient(RespClient&& other) noexcept;
  RespClient& operator=(RespClient&& other) noexcept;

  /// Sends one command and waits for its reply. Errors: timed_out, unavailable (the connection
  /// broke): the command may or may not have been executed; malformed.
  Result<RespValue> call(const std::vector<std::string>& words, Timeout timeout);
  /// Sends without waiting; one reply() for each.
  Result<void> send(const std::vector<std::vector<std::string>>& commands, Timeout timeout) const;
  Result<RespValue> reply(Timeout timeout);

 private:
  explicit RespClient(int socket);
  Result<void> begin_tls(const std::string& address, const Access& access,
                         std::chrono::steady_clock::time_point deadline);

  int socket_ = -1;
  std::unique_ptr<tls::Stream> stream_;  ///< null: plain
  std::string input_;
};

}  // namespace leasehold::client
