// What one connection speaks: requests become bytes, and what arrives becomes replies.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/bench/load/mix.h>
#include <leasehold/bench/load/reply.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::bench {

/// One request of an operation: a modify is two of them.
struct Request {
  /// read, update (any write), or scan.
  OperationKind kind = OperationKind::read;
  std::uint64_t key = 0;
  std::uint64_t count = 1;  ///< keys, of a scan
  std::string_view value;   ///< of a write; only for the call
};

/// Of one connection, from its beginning on. It has no socket. One thread.
class Talk {
 public:
  class Replies {
   public:
    virtual ~Replies() = default;
    /// `number` is that of the request. False: nobody waits for it, and the connection is over.
    virtual bool replied(std::uint64_t number, const ReplyView& reply) = 0;
  };

  virtual ~Talk() = default;

  /// `number` is one more than that of the last request; the first is 0. May append to `output`.
  virtual void ask(const Request& request, std::uint64_t number, std::string& output) = 0;
  /// Appends what else has to be sent.
  virtual void take_output(std::string& output) = 0;
  /// Takes what came, and calls `replies` for what is complete; that may ask() again. Errors:
  /// malformed: the connection is of no more use. The message is a kind of error, in a few words.
  virtual Result<void> arrived(std::string_view bytes, Replies& replies) = 0;
  /// The server takes no more requests on this connection; what is under way is still answered.
  virtual bool ending() const { return false; }
};

}  // namespace leasehold::bench
