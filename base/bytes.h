// Bytes: an immutable, reference-counted run of bytes.
//
// A payload is read from a socket once and is then part of the log cache, of the write batch for
// the disk, of the frames to the peers and of the apply queue. All of them share one allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold {

/// Copying is a reference count; the content never changes. Safe to share among threads.
class Bytes {
 public:
  Bytes() = default;
  /// Copies `view`.
  explicit Bytes(std::string_view view) : Bytes(std::string(view)) {}
  /// Copies a text that ends in a zero byte: a literal.
  explicit Bytes(const char* text) : Bytes(std::string(text)) {}
  /// Takes over `owned` without copying its content.
  explicit Bytes(std::string&& owned) {
    if (owned.empty()) return;
    auto shared = std::make_shared<const std::string>(std::move(owned));
    view_ = *shared;
    owner_ = std::move(shared);
  }

  std::string_view view() const { return view_; }
  const char* data() const { return view_.data(); }
  std::size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }

  /// The part from `offset` on, at most `count` bytes of it, sharing the same allocation.
  Bytes slice(std::size_t offset, std::size_t count = std::string_view::npos) const {
    Bytes part = *this;
    part.view_ = view_.substr(offset, count);
    return part;
  }

  friend bool operator==(const Bytes& a, const Bytes& b) { return a.view_ == b.view_; }

 private:
  std::shared_ptr<const std::string> owner_;
  /// Invariant: empty, or a part of *owner_.
  std::string_view view_;
};

}  // namespace leasehold
