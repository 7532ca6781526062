#include <leasehold/bench/load/key_choice.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace leasehold::bench {
namespace {

constexpr int kRounds = 4;

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

}  // namespace

double unit_draw(Random& random) {
  return static_cast<double>(random.next() >> 11U) * 0x1.0p-53;
}

Zipf::Zipf(std::uint64_t n, double exponent) : exponent_(exponent), n_(static_cast<double>(n)) {
  first_area_ = area(1.5) - 1;
  last_area_ = area(n_ + 0.5);
  sure_ = 2 - area_inverse(area(2.5) - height(2));
}

double Zipf::height(double x) const {
  return std::pow(x, -exponent_);
}

double Zipf::area(double x) const {
  return (std::pow(x, 1 - exponent_) - 1) / (1 - exponent_);
}

double Zipf::area_inverse(double area) const {
  return std::pow(1 + area * (1 - exponent_), 1 / (1 - exponent_));
}

std::uint64_t Zipf::draw(Random& random) const {
  for (;;) {
    const double drawn = last_area_ + unit_draw(random) * (first_area_ - last_area_);
    const double x = area_inverse(drawn);
    const double rank = std::clamp(std::floor(x + 0.5), 1.0, n_);
    if (rank - x <= sure_ || drawn >= area(rank + 0.5) - height(rank)) {
      return static_cast<std::uint64_t>(rank);
    }
  }
}

Scramble::Scramble(std::uint64_t n)
    : n_(n), half_bits_((static_cast<unsigned>(std::bit_width(n > 1 ? n - 1 : 1)) + 1) / 2) {}

std::uint64_t Scramble::operator()(std::uint64_t index) const {
  // A Feistel network permutes a power of four that is at most four times n; what falls outside is
  // permuted again until it falls inside.
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  do {
    std::uint64_t left = index >> half_bits_;
    std::uint64_t right = index & mask;
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      const std::uint64_t next = left ^ (mixed(right + round * 0x9e3779b97f4a7c15U) & mask);
      left = right;
      right = next;
    }
    index = (left << half_bits_) | right;
  } while (index >= n_);
  return index;
}

KeyChoice::KeyChoice(Distribution distribution, std::uint64_t keys)
    : distribution_(distribution), first_keys_(keys), keys_(keys), zipf_(keys), scramble_(keys) {}

std::uint64_t KeyChoice::draw(Random& random) const {
  switch (distribution_) {
    case Distribution::uniform: return random.below(first_keys_);
    case Distribution::zipf: return scramble_(zipf_.draw(random) - 1);
    case Distribution::latest: return keys_ - zipf_.draw(random);
  }
  return 0;
}

std::uint64_t KeyChoice::insert() {
  const std::uint64_t key = keys_++;
  if (distribution_ == Distribution::latest) zipf_ = Zipf(keys_);
  return key;
}

}  // namespace leasehold::bench
