#include <leasehold/base/result.h>

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leasehold {
namespace {

Result<int> parse(const std::string& text) {
  if (text.empty()) return Error{ErrorCode::invalid_argument, "a number is missing: give one"};
  return std::stoi(text);
}

TEST(Result, HoldsAValue) {
  const Result<int> result = parse("17");
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(static_cast<bool>(result));
  EXPECT_EQ(result.value(), 17);
}

TEST(Result, HoldsAnError) {
  const Result<int> result = parse("");
  ASSERT_FALSE(result.ok());
  EXPECT_FALSE(static_cast<bool>(result));
  EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(result.error().message, "a number is missing: give one");
}

TEST(Result, TheValueCanBeChangedInPlace) {
  Result<std::string> result = std::string("a");
  result.value() += "b";
  EXPECT_EQ(result.value(), "ab");
}

TEST(Result, TheValueCanBeMovedOut) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  const std::unique_ptr<int> owned = std::move(result).value();
  EXPECT_EQ(*owned, 5);
}

TEST(Result, AnErrorWinsOverAValueThatCouldBeMadeFromIt) {
  struct Wide {
    Wide(Error error) : text(std::move(error.message)) {}  // NOLINT: implicit by intent
    std::string text;
  };
  const Result<Wide> result = Error{ErrorCode::io, "disk"};
  EXPECT_FALSE(result.ok());
}

TEST(Result, VoidIsSuccessUnlessAnErrorIsGiven) {
  const Result<void> good;
  EXPECT_TRUE(good.ok());
  EXPECT_TRUE(static_cast<bool>(good));
  const Result<void> bad = Error{ErrorCode::timed_out, "gave up after 5 s"};
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::timed_out);
}

TEST(ResultDeathTest, AskingForWhatIsNotThereIsABug) {
  EXPECT_DEATH(static_cast<void>(parse("").value()), "ok()");
  EXPECT_DEATH(static_cast<void>(parse("1").error()), "!ok()");
  EXPECT_DEATH(static_cast<void>(Result<void>().error()), "!ok()");
}

TEST(ErrorCode, EveryCodeHasItsOwnName) {
  const std::vector<ErrorCode> codes = {
      ErrorCode::invalid_argument,   ErrorCode::malformed,
      ErrorCode::unsupported_format, ErrorCode::corrupted,
      ErrorCode::wrong_cluster,      ErrorCode::in_use,
      ErrorCode::not_found,          ErrorCode::io,
      ErrorCode::overloaded,         ErrorCode::unavailable,
      ErrorCode::timed_out,          ErrorCode::stopped,
  };
  std::set<std::string> names;
  for (const ErrorCode code : codes) names.insert(error_code_name(code));
  EXPECT_EQ(names.size(), codes.size());
  EXPECT_STREQ(error_code_name(ErrorCode::wrong_cluster), "wrong_cluster");
}

}  // namespace
}  // namespace leasehold
