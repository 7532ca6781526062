// Which calls have a span.
#include <leasehold/node/tracer.h>
#include <leasehold/tests/replica/kept_spans.h>

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <utility>

namespace leasehold::node {
namespace {

class KeepingTracer final : public Tracer, public replica::testing::KeptSpans {
 public:
  using Tracer::Tracer;
  void ended(replica::SpanRecord span) override { keep(std::move(span)); }
};

constexpr replica::TraceContext kParent{.trace_high = 1, .trace_low = 2, .span = 3};

int wanted(const Tracer& tracer, int calls, const replica::TraceContext* parent = nullptr) {
  int wanted = 0;
  for (int i = 0; i < calls; ++i) wanted += tracer.wants(parent) ? 1 : 0;
  return wanted;
}

TEST(Tracer, DrawsItsPartOfTheCalls) {
  KeepingTracer tracer(0);
  EXPECT_EQ(wanted(tracer, 10'000), 0);
  tracer.set_ratio(1);
  EXPECT_EQ(wanted(tracer, 10'000), 10'000);
  tracer.set_ratio(0.25);
  // Eight standard deviations to either side.
  EXPECT_NEAR(wanted(tracer, 40'000), 10'000, 700);
}

TEST(Tracer, CutsWhatIsNoPart) {
  EXPECT_EQ(KeepingTracer(-1).ratio(), 0);
  EXPECT_EQ(KeepingTracer(7).ratio(), 1);
  EXPECT_EQ(KeepingTracer(std::numeric_limits<double>::quiet_NaN()).ratio(), 0);
}

TEST(Tracer, FollowsTheDecisionOfTheCaller) {
  KeepingTracer tracer(0);
  EXPECT_EQ(wanted(tracer, 100, &kParent), 100);
  tracer.set_ratio(1);
  EXPECT_EQ(wanted(tracer, 100, &replica::kUntraced), 0);
}

TEST(Tracer, GivesEachSpanItsPlaceInTheTrace) {
  KeepingTracer tracer(1);
  tracer.make("root", nullptr, {})->end({});
  tracer.make("part", &kParent, {}, true)->end({});
  const auto spans = tracer.all();
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].parent, 0U);
  EXPECT_NE(spans[0].self.trace_high | spans[0].self.trace_low, 0U);
  EXPECT_FALSE(spans[0].serves);
  EXPECT_EQ(spans[1].parent, kParent.span);
  EXPECT_EQ(spans[1].self.trace_high, kParent.trace_high);
  EXPECT_EQ(spans[1].self.trace_low, kParent.trace_low);
  EXPECT_NE(spans[1].self.span, kParent.span);
  EXPECT_TRUE(spans[1].serves);
  std::set<std::uint64_t> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(tracer.make("x", nullptr, {})->context().span);
  EXPECT_EQ(ids.size(), 1000U);
}

}  // namespace
}  // namespace leasehold::node
