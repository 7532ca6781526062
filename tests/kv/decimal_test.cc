// Sums of decimal fractions.
#include <leasehold/base/random.h>
#include <leasehold/kv/decimal.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace leasehold::kv {
namespace {

std::string sum(std::string_view a, std::string_view b) {
  return add_decimals(a, b).value_or("none");
}

TEST(Decimal, WhatIsANumber) {
  for (const char* text :
       {"0", "-0", "+1", "1.", ".5", "-.5", "007", "1e3", "1E+3", "1.5e-3", "0e9999", "1e-10000"}) {
    EXPECT_TRUE(is_decimal(text)) << text;
  }
  for (const char* text :
       {"",    "-",  "+",    ".",   "-.",  "e1",   "1e",    "1e+", " 1",      "1 ",    "1e 1",
        "--1", "1-", "1.5.", "nan", "inf", "0x10", "1e1.5", "1,5", "1e10001", "1e5000"}) {
    EXPECT_FALSE(is_decimal(text)) << text;
  }
  EXPECT_TRUE(is_decimal("0." + std::string(kDecimalBytesMax - 2, '0')));
  EXPECT_FALSE(is_decimal("0." + std::string(kDecimalBytesMax - 1, '0')));
  EXPECT_TRUE(is_decimal(std::string(kDecimalDigitsMax, '9')));
  EXPECT_FALSE(is_decimal("1" + std::string(kDecimalDigitsMax, '0')));
  EXPECT_FALSE(is_decimal(std::string("1\0", 2)));
}

TEST(Decimal, SumsAreExactAndShort) {
  EXPECT_EQ(sum("10.5", "0.1"), "10.6");
  EXPECT_EQ(sum("5.0e3", "2.0e2"), "5200");
  EXPECT_EQ(sum("0.1", "0.2"), "0.3");
  EXPECT_EQ(sum("1", "-1.1"), "-0.1");
  EXPECT_EQ(sum("-1.5", "1.5"), "0");
  EXPECT_EQ(sum("-0", "-0"), "0");
  EXPECT_EQ(sum("17179869184", "1.5"), "17179869185.5");
  EXPECT_EQ(sum("123456789012345678901234567890", "0.00000000000000001"),
            "123456789012345678901234567890.00000000000000001");
  EXPECT_EQ(sum("99.95", ".05"), "100");
  EXPECT_EQ(sum("1e20", "-1"), "99999999999999999999");
  EXPECT_EQ(sum("1e-400", "0"), "0");
}

TEST(Decimal, HalvesGoToTheEvenDigit) {
  EXPECT_EQ(sum("0.000000000000000005", "0"), "0");
  EXPECT_EQ(sum("0.000000000000000015", "0"), "0.00000000000000002");
  EXPECT_EQ(sum("0.000000000000000025", "0"), "0.00000000000000002");
  EXPECT_EQ(sum("0.0000000000000000250000001", "0"), "0.00000000000000003");
  EXPECT_EQ(sum("-0.000000000000000026", "0"), "-0.00000000000000003");
  EXPECT_EQ(sum("-0.000000000000000004", "0"), "0");
  EXPECT_EQ(sum("9.999999999999999996", "0"), "10");
}

TEST(Decimal, WhatIsTooLargeIsNoSum) {
  const std::string nines(kDecimalDigitsMax, '9');
  EXPECT_EQ(sum(nines, "0"), nines);
  EXPECT_EQ(sum(nines, "1"), "none");
  EXPECT_EQ(sum("-" + nines, "-1"), "none");
  EXPECT_EQ(sum(nines, "-1").back(), '8');
  // Rounded, it has a digit more.
  EXPECT_EQ(sum(nines, "0.999999999999999999"), "none");
  EXPECT_EQ(add_decimals(nines, "0.99999999999999999")->size(), nines.size() + 18);
}

__extension__ typedef __int128 Wide;

TEST(Decimal, SumsAreThoseOfIntegers) {
  Random random(3);
  for (int round = 0; round < 20000; ++round) {
    const auto a = static_cast<std::int64_t>(random.next() >> random.below(60));
    const auto b = -static_cast<std::int64_t>(random.next() >> (1 + random.below(60)));
    const Wide whole = Wide(a) + Wide(b);
    const auto high = static_cast<std::int64_t>(whole / 1'000'000'000);
    const auto low = static_cast<std::int64_t>(whole % 1'000'000'000);
    std::string expected = std::to_string(high < 0 ? -high : high);
    std::string tail = std::to_string(low < 0 ? -low : low);
    tail.insert(0, 9 - tail.size(), '0');
    tail.resize(tail.find_last_not_of('0') + 1);
    if (!tail.empty()) expected += "." + tail;
    if (whole < 0) expected.insert(0, "-");
    ASSERT_EQ(sum(std::to_string(a) + "e-9", std::to_string(b) + "E-09"), expected)
        << a << " " << b;
  }
}

}  // namespace
}  // namespace leasehold::kv
