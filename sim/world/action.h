// Something to do once, later.
#pragma once

#include <leasehold/base/assert.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace leasehold::sim {

/// A callable without arguments or result, as std::function<void()>, that is moved and never
/// copied, and that holds what it captured in itself while that is small: a simulation makes
/// millions of them.
class Action {
 public:
  /// Captures up to this size need no allocation.
  static constexpr std::size_t kInlineBytes = 48;

  Action() = default;
  template <class Callable, class Plain = std::decay_t<Callable>,
            class = std::enable_if_t<!std::is_same_v<Plain, Action>>>
  Action(Callable&& callable) {  // NOLINT(google-explicit-constructor): as std::function
    if constexpr (kFits<Plain>) {
      new (place_) Plain(std::forward<Callable>(callable));
      kind_ = &kInline<Plain>;
    } else {
      auto* made = new Plain(std::forward<Callable>(callable));
      // NOLINTNEXTLINE(bugprone-sizeof-expression): the pointer itself is kept
      std::memcpy(place_, &made, sizeof made);
      kind_ = &kOnHeap<Plain>;
    }
  }
  Action(Action&& other) noexcept { take(other); }
  Action& operator=(Action&& other) noexcept {
    if (this == &other) return *this;
    clear();
    take(other);
    return *this;
  }
  Action(const Action&) = delete;
  Action& operator=(const Action&) = delete;
  ~Action() { clear(); }

  /// Asserts that there is something to do.
  void operator()() const {
    LEASEHOLD_ASSERT(kind_ != nullptr);
    kind_->call(place_);
  }

 private:
  /// What is done with the bytes, by type.
  struct Kind {
    void (*call)(unsigned char* place);
    /// Null: the bytes are copied. The one at `from` is gone then.
    void (*move)(unsigned char* from, unsigned char* to);
    /// Null: nothing is to be done.
    void (*destroy)(unsigned char* place);
  };

  // NOLINTBEGIN(misc-redundant-expression): true of some types only
  template <class Plain>
  static constexpr bool kFits =
      sizeof(Plain) <= kInlineBytes &&
      alignof(Plain) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<Plain>;
  // NOLINTEND(misc-redundant-expression)

  template <class Plain>
  static Plain& inside(unsigned char* place) {
    return *std::launder(reinterpret_cast<Plain*>(place));
  }
  template <class Plain>
  static Plain* on_heap(unsigned char* place) {
    Plain* made = nullptr;
    std::memcpy(&made, place, sizeof made);  // NOLINT(bugprone-sizeof-expression): as above
    return made;
  }

  template <class Plain>
  static void call_inside(unsigned char* place) {
    inside<Plain>(place)();
  }
  template <class Plain>
  static void move_inside(unsigned char* from, unsigned char* to) {
    new (to) Plain(std::move(inside<Plain>(from)));
    inside<Plain>(from).~Plain();
  }
  template <class Plain>
  static void destroy_inside(unsigned char* place) {
    inside<Plain>(place).~Plain();
  }
  template <class Plain>
  static void call_on_heap(unsigned char* place) {
    (*on_heap<Plain>(place))();
  }
  template <class Plain>
  static void destroy_on_heap(unsigned char* place) {
    delete on_heap<Plain>(place);
  }

  template <class Plain>
  static constexpr Kind kInline = {
      &call_inside<Plain>, std::is_trivially_copyable_v<Plain> ? nullptr : &move_inside<Plain>,
      std::is_trivially_destructible_v<Plain> ? nullptr : &destroy_inside<Plain>};
  template <class Plain>
  static constexpr Kind kOnHeap = {&call_on_heap<Plain>, nullptr, &destroy_on_heap<Plain>};

  void take(Action& other) {
    kind_ = std::exchange(other.kind_, nullptr);
    if (kind_ == nullptr) return;
    if (kind_->move == nullptr) {
      std::memcpy(place_, other.place_, kInlineBytes);
    } else {
      kind_->move(other.place_, place_);
    }
  }
  void clear() {
    if (kind_ != nullptr && kind_->destroy != nullptr) kind_->destroy(place_);
    kind_ = nullptr;
  }

  const Kind* kind_ = nullptr;
  /// What was captured, or a pointer to it. Calling may change it, as with std::function.
  alignas(std::max_align_t) mutable unsigned char place_[kInlineBytes];
};

}  // namespace leasehold::sim
