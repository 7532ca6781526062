// Ring: a queue that costs nothing while it is empty.
#pragma once

#include <leasehold/base/assert.h>

#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace leasehold {

/// A queue in one block of memory, which grows by doubling. A std::deque holds more than half a
/// kilobyte while it is empty, which thousands of resting groups would pay many times over, and
/// asks for memory again and again while a queue moves on.
///
/// References are valid until the next push. T has a default value; a place that is left gets it.
template <class T>
class Ring {
 public:
  template <class Of, class Value>
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = Value*;
    using reference = Value&;

    Iterator() = default;
    Iterator(Of& ring, std::size_t at) : ring_(&ring), at_(at) {}
    reference operator*() const { return (*ring_)[at_]; }
    pointer operator->() const { return &(*ring_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return std::exchange(*this, Iterator(*ring_, at_ + 1)); }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    Of* ring_ = nullptr;
    std::size_t at_ = 0;
  };

  Ring() = default;
  Ring(const Ring&) = default;
  /// `other` is empty then.
  Ring(Ring&& other) noexcept
      : slots_(std::exchange(other.slots_, {})),
        first_(std::exchange(other.first_, 0)),
        size_(std::exchange(other.size_, 0)) {}
  Ring& operator=(const Ring&) = default;
  Ring& operator=(Ring&& other) noexcept {
    if (this == &other) return *this;
    slots_ = std::exchange(other.slots_, {});
    first_ = std::exchange(other.first_, 0);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  ~Ring() = default;

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  T& operator[](std::size_t at) { return slots_[place(at)]; }
  const T& operator[](std::size_t at) const { return slots_[place(at)]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }

  auto begin() { return Iterator<Ring, T>(*this, 0); }
  auto end() { return Iterator<Ring, T>(*this, size_); }
  auto begin() const { return Iterator<const Ring, const T>(*this, 0); }
  auto end() const { return Iterator<const Ring, const T>(*this, size_); }

  void push_back(T value) {
    if (size_ == slots_.size()) grow();
    ++size_;
    back() = std::move(value);
  }
  void pop_front() {
    leave(front());
    first_ = (first_ + 1) & (slots_.size() - 1);
    if (--size_ == 0) rest();
  }
  void pop_back() { truncate(size_ - 1); }
  /// Only the first `size` stay.
  void truncate(std::size_t size) {
    LEASEHOLD_ASSERT(size <= size_);
    while (size_ > size) {
      leave(back());
      --size_;
    }
    if (size_ == 0) rest();
  }
  void clear() { truncate(0); }
  /// Gives back its memory, if it is empty.
  void give_back() {
    if (empty()) *this = Ring();
  }

 private:
  /// More than this is given back when the queue is empty.
  static constexpr std::size_t kKeptBytes = 1024;
  static constexpr std::size_t kFirstSlots = 4;

  /// The number of slots is a power of two.
  std::size_t place(std::size_t at) const {
    LEASEHOLD_ASSERT(at < size_);
    return (first_ + at) & (slots_.size() - 1);
  }
  static void leave(T& slot) {
    if constexpr (!std::is_trivially_destructible_v<T>) slot = T();
  }
  void grow() {
    std::vector<T> larger(slots_.empty() ? kFirstSlots : 2 * slots_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    slots_ = std::move(larger);
    first_ = 0;
  }
  void rest() {
    first_ = 0;
    if (slots_.size() * sizeof(T) > kKeptBytes) slots_ = std::vector<T>();
  }

  std::vector<T> slots_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace leasehold
