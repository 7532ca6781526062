// Strong integers: a Term is not an Index, and neither is a number.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace leasehold {

/// An integer that only mixes with its own kind. `Tag` is any (incomplete) type that names the
/// kind.
///
/// The arithmetic is what positions and counters need: a step by a plain number, and the distance
/// of two values.
template <class Tag, class Rep = std::uint64_t>
class StrongInt {
 public:
  using rep = Rep;

  constexpr StrongInt() = default;
  constexpr explicit StrongInt(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }
  constexpr StrongInt next() const { return StrongInt(value_ + 1); }
  constexpr StrongInt prev() const { return StrongInt(value_ - 1); }

  friend constexpr bool operator==(StrongInt, StrongInt) = default;
  friend constexpr auto operator<=>(StrongInt, StrongInt) = default;
  friend constexpr StrongInt operator+(StrongInt a, Rep n) { return StrongInt(a.value_ + n); }
  friend constexpr StrongInt operator-(StrongInt a, Rep n) { return StrongInt(a.value_ - n); }
  /// Distance; the caller knows that `a` is not below `b`.
  friend constexpr Rep operator-(StrongInt a, StrongInt b) { return a.value_ - b.value_; }

 private:
  Rep value_ = 0;
};

}  // namespace leasehold

template <class Tag, class Rep>
struct std::hash<leasehold::StrongInt<Tag, Rep>> {
  std::size_t operator()(leasehold::StrongInt<Tag, Rep> v) const noexcept {
    return std::hash<Rep>{}(v.value());
  }
};
