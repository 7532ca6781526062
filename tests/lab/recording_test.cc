// A trace in a copy of the page.
#include <leasehold/lab/lab.h>
#include <leasehold/lab/recording.h>
#include <leasehold/story/trace_file.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace leasehold::lab {
namespace {

using story::Record;
using testing::HasSubstr;
using testing::Not;

const char* const kPlace =
    "<script id=\"recording\" type=\"application/x-ndjson\" data-version=\"1\">";

std::string bare_page() {
  return std::string("<html>before ") + kPlace + "</script> behind</html>";
}

std::vector<Record> recorded() {
  Lab lab{Visit()};
  lab.run(std::chrono::milliseconds(1500));
  return lab.take_records();
}

/// What stands in the page's element.
std::string inside(const std::string& page) {
  const std::size_t begin = page.find(kPlace) + std::string(kPlace).size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

std::string refused_page(const std::string& page, const std::vector<Record>& records) {
  const Result<std::string> written = page_with_recording(page, records);
  return written.ok() ? "taken" : written.error().message;
}

TEST(Recording, ThePageHoldsEveryRecordAsATraceFileDoes) {
  const std::vector<Record> records = recorded();
  const Result<std::string> page = page_with_recording(bare_page(), records);
  ASSERT_TRUE(page.ok()) << page.error().message;
  const auto read = story::decode_trace("page", inside(page.value()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read.value().size(), records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    ASSERT_EQ(story::encode_record(read.value()[i]), story::encode_record(records[i]));
  }
}

TEST(Recording, NoTextOfATraceEndsItsElement) {
  std::vector<Record> records = recorded();
  records.front().text = "</script><script>alert(1)</script><!-- <b>";
  const Result<std::string> page = page_with_recording(bare_page(), records);
  ASSERT_TRUE(page.ok());
  const std::string text = inside(page.value());
  EXPECT_THAT(text, HasSubstr("\\u003c/script>\\u003cscript>alert(1)\\u003c/script>\\u003c!-- "));
  EXPECT_THAT(text, Not(HasSubstr("<")));
  EXPECT_THAT(page.value(), HasSubstr("</script> behind</html>"));
  EXPECT_EQ(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), records.size());
}

TEST(Recording, AnotherPageIsRefused) {
  EXPECT_THAT(refused_page("<html></html>", recorded()), HasSubstr("make lab"));
  EXPECT_THAT(refused_page(bare_page() + bare_page(), recorded()), HasSubstr("no page of the lab"));
  const std::string full = page_with_recording(bare_page(), recorded()).value();
  EXPECT_THAT(refused_page(full, recorded()), HasSubstr("no page of the lab"));
}

TEST(Recording, MoreThanAPageCanShowIsRefused) {
  const std::vector<Record> some = recorded();
  std::vector<Record> records = some;
  records.resize(kRecordingRecordsMax + 1, some.back());
  EXPECT_THAT(refused_page(bare_page(), records), HasSubstr("250001 records"));
  records = some;
  for (std::uint64_t node = 1; node <= kRecordingLanesMax + 1; ++node) {
    records.push_back(some.back());
    records.back().node = raft::NodeId(node);
  }
  EXPECT_THAT(refused_page(bare_page(), records), HasSubstr("more than 16 replicas"));
  records = some;
  records.back().text.assign(kRecordingBytesMax, 'x');
  EXPECT_THAT(refused_page(bare_page(), records), HasSubstr("bytes; record less"));
  EXPECT_THAT(refused_page(bare_page(), {Record()}), HasSubstr("tells of no node"));
}

}  // namespace
}  // namespace leasehold::lab
