// The URI of a name: one for each name, and no other is accepted.
#include <leasehold/base/random.h>
#include <leasehold/tls/name.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leasehold::tls {
namespace {

const std::string kUuid = "0123456789abcdef0123456789abcdef";

TEST(CertificateName, GoldenUris) {
  EXPECT_EQ(to_uri(NodeName{"orders", 3, kUuid}), "leasehold://orders/node/3/" + kUuid);
  EXPECT_EQ(to_uri(NodeName{"orders", 3, "-"}), "leasehold://orders/node/3/-");
  EXPECT_EQ(to_uri(UserName{"a b/c", "ann@x"}), "leasehold://a%20b%2Fc/user/ann%40x");
}

TEST(CertificateName, EveryValidNameIsReadBack) {
  Random random(1);
  for (int round = 0; round < 5000; ++round) {
    const auto text = [&random](std::size_t bytes_max) {
      std::string bytes(1 + random.below(bytes_max), ' ');
      for (char& byte : bytes) byte = static_cast<char>(random.below(256));
      return bytes;
    };
    CertificateName name = UserName{text(kClusterNameBytesMax), text(kUserNameBytesMax)};
    if (round % 2 == 0) {
      name = NodeName{text(kClusterNameBytesMax), 1 + random.below(~std::uint64_t{0}),
                      round % 4 == 0 ? "-" : kUuid};
    }
    ASSERT_TRUE(validate_name(name));
    const auto back = parse_uri(to_uri(name));
    ASSERT_TRUE(back) << to_uri(name) << ": " << back.error().message;
    EXPECT_TRUE(back.value() == name) << to_uri(name);
  }
}

TEST(CertificateName, OnlyTheOneSpellingIsAccepted) {
  const std::vector<std::string> wrong = {
      "",
      "leasehold://",
      "leasehold://c",
      "leasehold://c/node",
      "leasehold://c/node/1",
      "leasehold://c/node/1/",
      "leasehold://c/node//-",
      "leasehold://c/node/0/-",
      "leasehold://c/node/01/-",
      "leasehold://c/node/+1/-",
      "leasehold://c/node/-1/-",
      "leasehold://c/node/1x/-",
      "leasehold://c/node/18446744073709551616/-",
      "leasehold://c/node/1/-/",
      "leasehold://c/node/1/--",
      "leasehold://c/node/1/" + kUuid + "0",
      "leasehold://c/node/1/" + kUuid.substr(1),
      "leasehold://c/node/1/0123456789ABCDEF0123456789abcdef",
      "leasehold://c/node/1/00000000000000000000000000000000",
      "leasehold:///node/1/-",
      "leasehold://c/user/",
      "leasehold://c/user/a/b",
      "leasehold://c/user/a b",
      "leasehold://c/user/a%2fb",
      "leasehold://c/user/%61",
      "leasehold://c/user/a%2",
      "leasehold://c/user/a%",
      "leasehold://c/user/a%G0",
      "leasehold://c/user/a?b",
      "leasehold://c/user/a\n",
      std::string("leasehold://c/user/a\0b", 22),
      "leasehold://c/admin/a",
      "leasehold://c/User/a",
      "LEASEHOLD://c/user/a",
      "leasehold:/c/user/a",
      " leasehold://c/user/a",
      "https://c/user/a",
      "leasehold://" + std::string(kClusterNameBytesMax + 1, 'c') + "/user/a",
      "leasehold://c/user/" + std::string(kUserNameBytesMax + 1, 'a'),
      "leasehold://c/user/" + std::string(1U << 20U, 'a'),
  };
  for (const std::string& uri : wrong) {
    const auto parsed = parse_uri(uri);
    EXPECT_FALSE(parsed) << uri.substr(0, 100);
    if (parsed) continue;
    EXPECT_EQ(parsed.error().code, ErrorCode::malformed);
  }
}

TEST(CertificateName, AByteMoreOrLessIsAnotherNameOrNone) {
  Random random(2);
  const std::string good = to_uri(NodeName{"orders", 42, kUuid});
  const auto name = parse_uri(good);
  ASSERT_TRUE(name);
  for (int round = 0; round < 20000; ++round) {
    std::string uri = good;
    const std::size_t at = random.below(uri.size());
    switch (random.below(3)) {
      case 0: uri[at] = static_cast<char>(random.below(256)); break;
      case 1: uri.erase(at, 1); break;
      default: uri.insert(at, 1, static_cast<char>(random.below(256))); break;
    }
    const auto parsed = parse_uri(uri);
    if (!parsed) continue;
    EXPECT_EQ(to_uri(parsed.value()), uri);
    EXPECT_EQ(parsed.value() == name.value(), uri == good);
  }
}

TEST(CertificateName, NamesOutOfBoundsSayWhatIsWrong) {
  const auto message = [](const CertificateName& name) {
    const auto valid = validate_name(name);
    return valid ? std::string() : valid.error().message;
  };
  EXPECT_NE(message(NodeName{"c", 0, "-"}).find("node id 0"), std::string::npos);
  EXPECT_NE(message(NodeName{"", 1, "-"}).find("a cluster's name has 1 to 256"), std::string::npos);
  EXPECT_NE(message(NodeName{"c", 1, "x"}).find("32 hexadecimal digits"), std::string::npos);
  EXPECT_NE(message(UserName{"c", ""}).find("a user's name has 1 to 256"), std::string::npos);
}

}  // namespace
}  // namespace leasehold::tls
