// Result<T>: a value, or a typed error that says what to do.
#pragma once

#include <leasehold/base/assert.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace leasehold {

/// The kind of a failure. Callers branch on this; people read the message.
enum class ErrorCode {
  invalid_argument,    ///< the caller's value is wrong: an option, a flag, a command
  malformed,           ///< bytes from outside do not follow their format
  unsupported_format,  ///< bytes of a format version that this build does not know
  corrupted,           ///< stored bytes are damaged
  wrong_cluster,       ///< the directory or the peer belongs to another cluster or node
  in_use,              ///< another process holds the resource
  not_found,           ///< the requested thing does not exist
  unsupported,         ///< the requested thing is not offered here
  io,                  ///< the operating system or the database refused an operation
  overloaded,          ///< a bounded queue is full; nothing was done, try again
  unavailable,         ///< no leader, or not formed yet; nothing was done, try again
  timed_out,           ///< the deadline passed
  stopped,             ///< the node is stopping
  removed,             ///< this node is not a member of its group any more
  clock_disrupted,     ///< this machine was stopped, and its clocks may not show it; start again
};

/// The code's name in logs: "wrong_cluster".
const char* error_code_name(ErrorCode code);

/// An error. The message is a sentence for a person and says what to do about it.
struct Error {
  ErrorCode code;
  std::string message;
};

/// A value or an Error. `[[nodiscard]]`: ignoring one is a compile-time warning, and warnings are
/// errors here.
template <class T>
class [[nodiscard]] Result {
 public:
  // Implicit by intent, so that a function can return either.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  /// The value. Asserts ok().
  T& value() & {
    LEASEHOLD_ASSERT(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    LEASEHOLD_ASSERT(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    LEASEHOLD_ASSERT(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  /// The error. Asserts !ok().
  const Error& error() const {
    LEASEHOLD_ASSERT(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

/// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    LEASEHOLD_ASSERT(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace leasehold
