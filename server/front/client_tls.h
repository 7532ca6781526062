// How the client port is protected: shared by its threads, and changed while it serves.
#pragma once

#include <leasehold/tls/context.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

namespace leasehold::server {

/// A record of a TLS handshake begins with it.
inline constexpr unsigned char kTlsHandshake = 0x16;
/// Whether a record of TLS, of any type, begins with this byte. No request does: those begin with
/// '*' or a letter.
inline bool begins_tls_record(char byte) {
  const auto first = static_cast<unsigned char>(byte);
  return first >= kTlsHandshake - 2 && first <= kTlsHandshake + 1;
}

/// Any thread.
class ClientTls {
 public:
  enum class Mode : std::uint8_t {
    off,
    /// Clients with TLS and without are served at the one port: while they move to TLS.
    optional,
    on,
  };

  ClientTls() = default;
  ClientTls(Mode mode, tls::ContextPtr context) : mode_(mode), context_(std::move(context)) {}

  Mode mode() const { return mode_.load(std::memory_order_acquire); }
  /// Null only if the mode is off.
  tls::ContextPtr context() const {
    const std::lock_guard lock(mutex_);
    return context_;
  }
  /// For connections from now on. Those that exist stay if their certificate is still valid; plain
  /// ones end if the mode is on. `context` may be null if the mode is off: nobody is believed then
  /// who came with TLS.
  void replace(Mode mode, tls::ContextPtr context) {
    const std::lock_guard lock(mutex_);
    context_ = std::move(context);
    mode_.store(mode, std::memory_order_release);
    generation_.fetch_add(1, std::memory_order_release);
  }
  /// Changes with each replace().
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  std::atomic<Mode> mode_{Mode::off};
  mutable std::mutex mutex_;
  tls::ContextPtr context_;  ///< guarded by mutex_
  std::atomic<std::uint64_t> generation_{0};
};

}  // namespace leasehold::server
