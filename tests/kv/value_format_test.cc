// The bytes, in every log, of commands on fractions, bits, copies and the ends of times.
#include <leasehold/kv/command.h>
#include <leasehold/tests/kv/command_text.h>

#include <gtest/gtest.h>

#include <string>

namespace leasehold::kv {
namespace {

using testing::encoded_text;
using testing::hex;

TEST(ValueFormat, TheEndOfATimeIsPinned) {
  Set set{"k", "v"};
  set.ttl = KeyTime(0x0f4240);
  set.end_ms = 258;
  EXPECT_EQ(hex(encoded_text(set)),
            "0101"
            "c0"
            "00000000000f4240"
            "0000000000000102"
            "00000001"
            "6b"
            "76");
  MSet mset{MSetCondition::none, {{"k", "v"}}, KeyTime(0x0f4240)};
  mset.end_ms = 258;
  EXPECT_EQ(hex(encoded_text(mset)),
            "0107"
            "0c"
            "00000000000f4240"
            "0000000000000102"
            "00000001"
            "00000001"
            "6b"
            "00000001"
            "76");
  ExpireKey expire{"k", TimeChange::set, KeyTime(0x0f4240)};
  expire.end_ms = 258;
  EXPECT_EQ(hex(encoded_text(expire)),
            "010d"
            "80"
            "00000000000f4240"
            "0000000000000102"
            "6b");
}

TEST(ValueFormat, FractionsCopiesAndBitsArePinned) {
  EXPECT_EQ(hex(encoded_text(IncrByFloat{"k", "1.5"})),
            "0113"
            "00000003"
            "312e35"
            "6b");
  EXPECT_EQ(hex(encoded_text(Copy{true, "a", "b"})),
            "0114"
            "01"
            "00000001"
            "61"
            "62");
  EXPECT_EQ(hex(encoded_text(Copy{false, "a", "b", {5, KeyTime(6)}})),
            "0114"
            "02"
            "0000000000000005"
            "0000000000000006"
            "00000001"
            "61"
            "62");
  EXPECT_EQ(hex(encoded_text(SetBit{258, true, "k"})),
            "0115"
            "00000102"
            "01"
            "6b");
  EXPECT_EQ(hex(encoded_text(Lcs{LcsWanted::runs, true, 258, "a", "b"})),
            "012b"
            "06"
            "0000000000000102"
            "00000001"
            "61"
            "62");
  EXPECT_EQ(hex(encoded_text(GetBit{258, "k"})),
            "0129"
            "00000102"
            "6b");
  EXPECT_EQ(hex(encoded_text(BitCount{1, -1, true, "k"})),
            "012a"
            "0000000000000001"
            "ffffffffffffffff"
            "01"
            "6b");
}

}  // namespace
}  // namespace leasehold::kv
