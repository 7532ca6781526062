// The bytes between a client and this node: the Redis serialization protocol, RESP.
//
// A request is an array of bulk strings, or one line of words ("inline", for people with netcat):
//
//   request = "*" count CRLF count times ( "$" length CRLF bytes CRLF )
//           | word { " " word } [ CR ] LF            a word may be quoted, as in a shell
//
// Replies are RESP2 until the client says HELLO 3; then null and maps have types of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server {

/// Words of one request.
inline constexpr std::size_t kArgumentsMax = 65536;
/// One bulk string: the largest value, and slack so that a value a little too large is refused by
/// name and does not cost the connection.
inline constexpr std::size_t kBulkBytesMax = (16U << 20U) + (64U << 10U);
/// A whole request with its framing.
inline constexpr std::size_t kRequestBytesMax = kBulkBytesMax + (1U << 20U);
/// An inline request.
inline constexpr std::size_t kInlineBytesMax = 64U << 10U;
/// Words of a request, and bytes of each, of a client that has not proven a user: enough for HELLO
/// with AUTH, as in Redis.
inline constexpr std::size_t kStrangerArgumentsMax = 10;
inline constexpr std::size_t kStrangerBulkBytesMax = 16U << 10U;
/// "*12345\r\n" and "$12345\r\n" never need more.
inline constexpr std::size_t kLengthLineBytesMax = 16;

struct RequestLimits {
  std::size_t arguments = kArgumentsMax;
  std::size_t bulk_bytes = kBulkBytesMax;
};
inline constexpr RequestLimits kStrangerLimits = {kStrangerArgumentsMax, kStrangerBulkBytesMax};

enum class ParseStatus : std::uint8_t {
  incomplete,  ///< give it the same bytes and more
  complete,    ///< args() and consumed() speak of one request; it may have no words: skip it
  malformed,   ///< error() says why; the connection cannot be trusted to be in step any more
};

/// Takes requests out of a connection's buffer, in place.
///
/// It keeps its position in an unfinished request, so bytes are looked at once however they arrive.
/// One thread at a time; allocates only when a request has more words than any before it.
class RequestParser {
 public:
  /// `bytes` starts where the request starts; after `incomplete` it starts with the same bytes as
  /// before, though they may have moved in memory. After `complete` the next call starts a new
  /// request, with the bytes after consumed(). `limits` concern what is read now.
  ParseStatus parse(std::string_view bytes, const RequestLimits& limits = {});

  /// The words of the complete request. They point into `bytes` (inline: into the parser) and are
  /// valid until the next parse() or until the buffer moves.
  const std::vector<std::string_view>& args() const { return args_; }
  /// The complete request was one line, not an array.
  bool is_line() const { return line_; }
  /// Length of the complete request.
  std::size_t consumed() const { return position_; }
  /// Incomplete: the least length of the request, as far as it is known.
  std::size_t expected() const { return expected_; }
  /// Malformed: the text of the error reply, without its first word.
  const std::string& error() const { return error_; }
  /// What it needs beside the bytes, which grows with the number of words.
  std::size_t held_bytes() const;
  /// Between two requests: gives back what a large one needed. args() are gone.
  void trim();

 private:
  struct Span {
    std::size_t offset;
    std::size_t length;
  };
  enum class LineStatus : std::uint8_t { incomplete, complete, malformed };

  ParseStatus parse_array(std::string_view bytes, const RequestLimits& limits);
  ParseStatus parse_inline(std::string_view bytes);
  bool split_inline(std::string_view line);
  /// The usual length: a few digits, whole, and not above `max`. False: read_length() has to look.
  bool read_plain_length(std::string_view bytes, std::int64_t max, std::int64_t& value);
  LineStatus read_length(std::string_view bytes, const char* what, std::int64_t max,
                         std::int64_t& value);
  ParseStatus malformed(std::string why);
  void restart();

  bool finished_ = true;
  bool line_ = false;
  bool counted_ = false;  ///< the array's "*" line has been read
  bool sized_ = false;    ///< the next bulk string's "$" line has been read
  std::size_t position_ = 0;
  std::size_t expected_ = 0;
  std::size_t remaining_ = 0;  ///< bulk strings that are still to come
  std::size_t bulk_bytes_ = 0;
  std::vector<Span> spans_;
  std::vector<std::string_view> args_;
  std::string inline_text_;
  std::string error_;
};

/// The version of RESP that a connection uses.
enum class Protocol : std::uint8_t { resp2 = 2, resp3 = 3 };

/// Which replies a client wants (CLIENT REPLY).
enum class ReplyWish : std::uint8_t { all, none, not_the_next };

// Replies are appended to the connection's output buffer.

void append_simple(std::string& out, std::string_view text);
/// `text` starts with the error's first word: "ERR …". Line ends in it are replaced by spaces.
void append_error(std::string& out, std::string_view text);
void append_integer(std::string& out, std::int64_t value);
void append_bulk(std::string& out, std::string_view bytes);
void append_null(std::string& out, Protocol protocol);
/// The null in place of an array: RESP2 has a form of its own for it.
void append_null_array(std::string& out, Protocol protocol);
/// `count` values follow.
void append_array(std::string& out, std::size_t count);
/// A message that is not a reply, of `count` values, which follow; in RESP2 it is an array.
void append_push(std::string& out, std::size_t count, Protocol protocol);
/// `count` pairs follow; in RESP2 it is an array of twice as many values.
void append_map(std::string& out, std::size_t count, Protocol protocol);

}  // namespace leasehold::server
