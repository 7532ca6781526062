// A file descriptor that closes itself.
#pragma once

#include <unistd.h>

#include <utility>

namespace leasehold::storage {

/// Closes the descriptor at the end of its life; -1: none.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }

 private:
  int number_;
};

}  // namespace leasehold::storage
