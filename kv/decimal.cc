// The digits of a number are kept as text, with a count of those behind the point: the sum of two
// such numbers is exact, however far apart they are, and no floating point takes part.
#include <leasehold/base/assert.h>
#include <leasehold/kv/decimal.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace leasehold::kv {
namespace {

struct Decimal {
  bool negative = false;
  std::string digits;      ///< the most significant one first; perhaps zeros in front
  std::size_t places = 0;  ///< how many of them are behind the point
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Takes digits off the front.
std::string_view take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

bool take_sign(std::string_view& text) {
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return negative;
}

/// What is left of a number is its exponent. None: it is none, or too large to matter.
std::optional<int> parse_exponent(std::string_view text) {
  if (text.empty()) return 0;
  if (text[0] != 'e' && text[0] != 'E') return std::nullopt;
  text.remove_prefix(1);
  const bool negative = take_sign(text);
  std::string_view rest = text;
  if (take_digits(rest).empty() || !rest.empty()) return std::nullopt;
  constexpr int kExponentMax = 10'000;
  int exponent = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (parsed.ec != std::errc() || exponent > kExponentMax) return std::nullopt;
  return negative ? -exponent : exponent;
}

std::optional<Decimal> parse(std::string_view text) {
  if (text.empty() || text.size() > kDecimalBytesMax) return std::nullopt;
  Decimal number;
  number.negative = take_sign(text);
  number.digits = take_digits(text);
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    const std::string_view fraction = take_digits(text);
    number.digits += fraction;
    number.places = fraction.size();
  }
  if (number.digits.empty()) return std::nullopt;
  const auto exponent = parse_exponent(text);
  if (!exponent) return std::nullopt;
  const auto shift = static_cast<std::size_t>(std::abs(*exponent));
  if (*exponent < 0) {
    number.places += shift;
  } else if (number.places >= shift) {
    number.places -= shift;
  } else {
    number.digits.append(shift - number.places, '0');
    number.places = 0;
  }
  if (number.digits.size() < number.places) {
    number.digits.insert(0, number.places - number.digits.size(), '0');
  }
  const std::size_t first = std::min(number.digits.find_first_not_of('0'), number.digits.size());
  if (number.digits.size() - first > kDecimalDigitsMax + number.places) return std::nullopt;
  return number;
}

/// So that both have as many digits before and behind the point.
void align(Decimal& number, std::size_t whole, std::size_t places) {
  number.digits.append(places - number.places, '0');
  number.places = places;
  number.digits.insert(0, whole + places - number.digits.size(), '0');
}

/// Of two that are aligned; the result has a digit more in front.
std::string add_digits(const std::string& a, const std::string& b) {
  std::string sum(a.size() + 1, '0');
  int carry = 0;
  for (std::size_t i = a.size(); i > 0; --i) {
    const int digit = (a[i - 1] - '0') + (b[i - 1] - '0') + carry;
    sum[i] = static_cast<char>('0' + digit % 10);
    carry = digit / 10;
  }
  sum[0] = static_cast<char>('0' + carry);
  return sum;
}

/// `a` is not smaller.
std::string subtract_digits(const std::string& a, const std::string& b) {
  std::string difference(a.size(), '0');
  int borrow = 0;
  for (std::size_t i = a.size(); i > 0; --i) {
    const int digit = (a[i - 1] - '0') - (b[i - 1] - '0') - borrow;
    borrow = digit < 0 ? 1 : 0;
    difference[i - 1] = static_cast<char>('0' + digit + 10 * borrow);
  }
  LEASEHOLD_ASSERT(borrow == 0);
  return difference;
}

void round_to_places(Decimal& number) {
  if (number.places <= kDecimalPlaces) return;
  const std::size_t kept = number.digits.size() - (number.places - kDecimalPlaces);
  const std::string cut = number.digits.substr(kept);
  number.digits.resize(kept);
  number.places = kDecimalPlaces;
  const bool odd = kept > 0 && (number.digits.back() - '0') % 2 == 1;
  const bool above_half = cut[0] > '5' || cut.find_first_not_of('0', 1) != std::string::npos;
  if (cut[0] < '5' || (!above_half && !odd)) return;
  std::string one(kept, '0');
  if (kept > 0) one.back() = '1';
  number.digits = add_digits(number.digits, one);
}

std::string text_of(const Decimal& number) {
  const std::size_t point = number.digits.size() - number.places;
  std::string whole = number.digits.substr(0, point);
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  std::string fraction = number.digits.substr(point);
  fraction.resize(fraction.find_last_not_of('0') + 1);
  if (whole.empty() && fraction.empty()) return "0";
  return (number.negative ? "-" : "") + (whole.empty() ? "0" : whole) +
         (fraction.empty() ? "" : "." + fraction);
}

}  // namespace

bool is_decimal(std::string_view text) {
  return parse(text).has_value();
}

std::optional<std::string> add_decimals(std::string_view a, std::string_view b) {
  auto left = parse(a);
  auto right = parse(b);
  LEASEHOLD_ASSERT(left && right);
  const std::size_t places = std::max(left->places, right->places);
  const std::size_t whole =
      std::max(left->digits.size() - left->places, right->digits.size() - right->places);
  align(*left, whole, places);
  align(*right, whole, places);
  Decimal sum;
  sum.places = places;
  sum.negative = left->negative;
  if (left->negative == right->negative) {
    sum.digits = add_digits(left->digits, right->digits);
  } else if (left->digits >= right->digits) {
    sum.digits = subtract_digits(left->digits, right->digits);
  } else {
    sum.negative = right->negative;
    sum.digits = subtract_digits(right->digits, left->digits);
  }
  round_to_places(sum);
  const std::size_t first = std::min(sum.digits.find_first_not_of('0'), sum.digits.size());
  if (sum.digits.size() - first > kDecimalDigitsMax + sum.places) return std::nullopt;
  return text_of(sum);
}

}  // namespace leasehold::kv
