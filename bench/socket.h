// Blocking TCP for the load client and the floors: nothing between them and the system calls.
#pragma once

#include <leasehold/base/result.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold::tls {
class Context;
class Stream;
}  // namespace leasehold::tls

namespace leasehold::bench {

/// An open file descriptor, closed at the end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), stream_(std::move(other.stream_)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  /// Null: plain.
  tls::Stream* stream() const { return stream_.get(); }
  /// Of a connection that was dialled. `host`: whom the certificate has to be for, unless it names
  /// a node; empty: anybody of the authority. Errors: unavailable.
  Result<void> begin_tls(const std::shared_ptr<const tls::Context>& context,
                         const std::string& host = "");

 private:
  int fd_ = -1;
  std::shared_ptr<tls::Stream> stream_;  ///< shared, so that this header need not know it
};

/// The last system error as an Error of code io: "WHAT: Connection refused".
Error system_error(const std::string& what);

/// A connection to `address` (host:port, IPv4 or a name) without Nagle's delay. With a timeout
/// connecting, each read and each write last no longer, as long as the socket blocks. Errors:
/// invalid_argument, io.
Result<Descriptor> connect_tcp(const std::string& address, std::uint64_t timeout_ms = 0);
/// A listener on `address`. Errors: invalid_argument, io.
Result<Descriptor> listen_tcp(const std::string& address);
/// The next connection, without Nagle's delay. Blocks.
Result<Descriptor> accept_tcp(const Descriptor& listener);

/// Blocks until all of `bytes` are written. Errors: io.
Result<void> write_all(const Descriptor& socket, std::string_view bytes);
/// Blocks until something arrived; appends nothing on error. Returns the number of bytes, at least
/// one. Errors: io, stopped (the other side closed).
Result<std::size_t> read_some(const Descriptor& socket, char* into, std::size_t capacity);

}  // namespace leasehold::bench
