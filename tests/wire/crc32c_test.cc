#include <leasehold/wire/crc32c.h>

#include <leasehold/base/random.h>

#include <gtest/gtest.h>

#include <string>

namespace leasehold::wire {
namespace {

std::string counting(int from, int step) {
  std::string bytes;
  for (int i = 0; i < 32; ++i) bytes.push_back(static_cast<char>(from + i * step));
  return bytes;
}

// RFC 3720, appendix B.4, and the check value that every catalogue of checksums lists.
TEST(Crc32c, KnownVectors) {
  const std::string zeros(32, '\0');
  const std::string ones(32, '\xff');
  for (auto* crc : {&crc32c, &crc32c_portable}) {
    EXPECT_EQ(crc("", 0), 0U);
    EXPECT_EQ(crc("123456789", 0), 0xe3069283U);
    EXPECT_EQ(crc(zeros, 0), 0x8a9136aaU);
    EXPECT_EQ(crc(ones, 0), 0x62a8ab43U);
    EXPECT_EQ(crc(counting(0, 1), 0), 0x46dd794eU);
    EXPECT_EQ(crc(counting(31, -1), 0), 0x113fdb5cU);
  }
}

TEST(Crc32c, TablesAndInstructionAgreeAtEveryLengthAndAlignment) {
  Random random(1);
  std::string bytes(400, '\0');
  for (char& c : bytes) c = static_cast<char>(random.below(256));
  for (std::size_t offset = 0; offset < 16; ++offset) {
    for (std::size_t size = 0; size + offset <= bytes.size(); ++size) {
      const std::string_view part = std::string_view(bytes).substr(offset, size);
      ASSERT_EQ(crc32c(part), crc32c_portable(part)) << offset << " " << size;
    }
  }
}

TEST(Crc32c, ContinuesFromWhatStandsBefore) {
  const std::string_view bytes = "a lease is a promise that is bounded by time";
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    EXPECT_EQ(crc32c(bytes.substr(cut), crc32c(bytes.substr(0, cut))), crc32c(bytes));
    EXPECT_EQ(crc32c_portable(bytes.substr(cut), crc32c_portable(bytes.substr(0, cut))),
              crc32c(bytes));
  }
}

}  // namespace
}  // namespace leasehold::wire
