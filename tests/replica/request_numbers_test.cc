#include <leasehold/base/random.h>
#include <leasehold/replica/request_numbers.h>

#include <gtest/gtest.h>

#include <iterator>
#include <set>

namespace leasehold::replica {
namespace {

// What a process can ask for in its life, generously.
constexpr std::uint64_t kStretch = std::uint64_t{1} << 40U;

TEST(RequestNumbers, NoTwoProcessesShareAStretch) {
  std::set<std::uint64_t> begins;
  std::size_t processes = 0;
  const auto add = [&](const raft::Uuid& uuid, std::uint64_t incarnation) {
    begins.insert(first_request(uuid, raft::Incarnation(incarnation)));
    ++processes;
  };
  Random random(3);
  for (int directory = 0; directory < 20; ++directory) {
    const std::uint64_t high = random.next();
    const raft::Uuid uuid{high, random.next()};
    for (std::uint64_t incarnation = 1; incarnation <= 20; ++incarnation) add(uuid, incarnation);
  }
  // Those of tests, which are not random.
  for (std::uint64_t id = 1; id <= 20; ++id) add(raft::Uuid{id, id}, 1);
  ASSERT_EQ(begins.size(), processes);
  for (auto begin = begins.begin(); std::next(begin) != begins.end(); ++begin) {
    EXPECT_GT(*std::next(begin) - *begin, kStretch);
  }
  EXPECT_GT(*begins.begin(), 0U);
  EXPECT_LT(*begins.rbegin(), std::uint64_t{1} << 63U);
}

}  // namespace
}  // namespace leasehold::replica
