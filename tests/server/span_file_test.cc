// The file of spans: its lines, its length, and what happens when it cannot be written.
#include <leasehold/node/system_clock.h>
#include <leasehold/server/span_file.h>
#include <leasehold/tests/base/temporary_folder.h>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

using replica::attribute;

lease::HolderInstant at(std::int64_t ns) {
  return lease::HolderInstant(lease::Duration(ns));
}

replica::SpanRecord span_of_a_set() {
  replica::SpanRecord span;
  span.name = "set";
  span.self = {0x0af7651916cd43dd, 0x8448eb211c80319c, 0x00f067aa0ba902b7};
  span.parent = 0xb7ad6b7169203331;
  span.serves = true;
  span.began = at(5);
  span.ended = at(9);
  span.attributes = {attribute("db.operation.name", "set")};
  span.stations = {{"queued", at(6), {}}, {"appended", at(7), {attribute("leasehold.index", 42)}}};
  span.stations_dropped = 1;
  span.problem = "a \"quoted\"\n word";
  return span;
}

const SpanResource kResource{"orders", "3", "1.2", "10.0.0.1:7201"};

TEST(SpanJson, IsWhatTheCollectorReads) {
  std::string line = span_line_begin(kResource);
  append_span(line, span_of_a_set(), 1'700'000'000'000'000'000, kResource);
  line += span_line_end();
  EXPECT_EQ(line,
            R"({"resourceSpans":[{"resource":{"attributes":[)"
            R"({"key":"service.name","value":{"stringValue":"leasehold"}},)"
            R"({"key":"service.namespace","value":{"stringValue":"orders"}},)"
            R"({"key":"service.instance.id","value":{"stringValue":"3"}},)"
            R"({"key":"service.version","value":{"stringValue":"1.2"}}]},)"
            R"("scopeSpans":[{"scope":{"name":"leasehold"},"spans":[)"
            R"({"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"00f067aa0ba902b7",)"
            R"("parentSpanId":"b7ad6b7169203331","name":"set","kind":2,)"
            R"("startTimeUnixNano":"1700000000000000005","endTimeUnixNano":"1700000000000000009",)"
            R"("attributes":[{"key":"db.system.name","value":{"stringValue":"leasehold"}},)"
            R"({"key":"server.address","value":{"stringValue":"10.0.0.1"}},)"
            R"({"key":"server.port","value":{"intValue":"7201"}},)"
            R"({"key":"db.operation.name","value":{"stringValue":"set"}}],)"
            R"("events":[{"timeUnixNano":"1700000000000000006","name":"queued","attributes":[]},)"
            R"({"timeUnixNano":"1700000000000000007","name":"appended","attributes":[)"
            R"({"key":"leasehold.index","value":{"intValue":"42"}}]}],"droppedEventsCount":1,)"
            R"("status":{"code":2,"message":"a \"quoted\"\n word"}}]}]}]})"
            "\n");
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

TEST(SpanJson, OfAPartOfTheWork) {
  replica::SpanRecord span;
  span.name = "leasehold.read";
  span.self = {1, 2, 3};
  std::string text;
  append_span(text, span, 0, kResource);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json.at("kind"), 1);
  EXPECT_EQ(json.count("parentSpanId"), 0U);
  EXPECT_TRUE(json.at("attributes").empty());
  EXPECT_TRUE(json.at("status").empty());
  EXPECT_EQ(json.count("droppedEventsCount"), 0U);
}

class SpanFileTest : public ::testing::Test {
 protected:
  void open(std::uint64_t bytes_max = std::uint64_t{64} << 20U) {
    SpanFile::Options options;
    options.path = path_;
    options.bytes_max = bytes_max;
    options.resource = kResource;
    options.unix_now_ns = [this] {
      if (before_write_) before_write_();
      return std::int64_t{1'700'000'000'000'000'000};
    };
    options.notice = [this](const std::string& text) {
      const std::lock_guard lock(mutex_);
      notices_.push_back(text);
    };
    auto opened = SpanFile::open(std::move(options), clock_);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    file_ = std::move(opened).value();
  }
  void give(std::size_t spans) {
    for (std::size_t i = 0; i < spans; ++i) file_->ended(span_of_a_set());
  }
  void close() { file_.reset(); }
  /// Until all that was given has been written, or is lost.
  SpanCounts settled(std::uint64_t spans) {
    SpanCounts counts;
    do {
      std::this_thread::yield();
      counts = file_->counts();
    } while (counts.written + counts.crowded + counts.unwritten < spans);
    return counts;
  }
  std::vector<std::string> notices() {
    const std::lock_guard lock(mutex_);
    return notices_;
  }
  /// The number of spans; each line is whole.
  static std::size_t spans_in(const std::string& path) {
    std::ifstream file(path);
    std::size_t spans = 0;
    for (std::string line; std::getline(file, line);) {
      EXPECT_FALSE(file.eof()) << "the last line has no end";
      EXPECT_LT(line.size(), std::size_t{1} << 20U);
      const auto json = nlohmann::json::parse(line);
      spans += json.at("resourceSpans").at(0).at("scopeSpans").at(0).at("spans").size();
    }
    return spans;
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.path("spans");
  node::SystemClock clock_;
  std::function<void()> before_write_;  ///< on the thread that writes
  std::mutex mutex_;
  std::vector<std::string> notices_;
  std::unique_ptr<SpanFile> file_;
};

TEST_F(SpanFileTest, HasAllSpansAtTheEnd) {
  open();
  give(3000);
  close();
  EXPECT_EQ(spans_in(path_), 3000U);
  struct stat found {};
  ASSERT_EQ(::stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
}

TEST_F(SpanFileTest, GoesOnBehindWhatIsThereAlsoBehindHalfALine) {
  open();
  give(1);
  close();
  std::ofstream(path_, std::ios::app) << R"({"resourceSpans":[)";
  open();
  give(2);
  close();
  std::ifstream file(path_);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(nlohmann::json::accept(lines[0]));
  EXPECT_FALSE(nlohmann::json::accept(lines[1]));
  EXPECT_TRUE(nlohmann::json::accept(lines[2]));
}

TEST_F(SpanFileTest, IsBounded) {
  constexpr std::uint64_t kMost = std::uint64_t{600} << 10U;
  open(kMost);
  give(4000);
  close();
  const std::uint64_t size = std::filesystem::file_size(path_);
  const std::uint64_t older = std::filesystem::file_size(path_ + ".1");
  EXPECT_LE(size, kMost);
  EXPECT_LE(older, kMost);
  EXPECT_GT(older, kMost / 2);
  EXPECT_GT(spans_in(path_), 0U);
  EXPECT_GT(spans_in(path_ + ".1"), 0U);
}

TEST_F(SpanFileTest, LosesAndCountsWhatIsTooMuch) {
  std::promise<void> writing;
  std::promise<void> all_are_given;
  before_write_ = [&writing, gate = all_are_given.get_future().share(), first = true]() mutable {
    if (!std::exchange(first, false)) return;
    writing.set_value();
    gate.wait();
  };
  open();
  give(1);
  writing.get_future().wait();
  give(SpanFile::kWaitingMax + 7);
  EXPECT_EQ(file_->counts().crowded, 7U);
  all_are_given.set_value();
  EXPECT_EQ(settled(1 + SpanFile::kWaitingMax + 7).written, 1 + SpanFile::kWaitingMax);
  EXPECT_EQ(file_->counts().crowded, 7U);
  EXPECT_TRUE(notices().empty());
}

TEST_F(SpanFileTest, CannotBeOpenedWhereNoFileCanBe) {
  SpanFile::Options options;
  options.path = folder_.path("none/spans");
  const auto missing = SpanFile::open(options, clock_);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::io);
  EXPECT_NE(missing.error().message.find("--spans"), std::string::npos);
  options.path = "/dev/full";
  EXPECT_FALSE(SpanFile::open(options, clock_).ok());
  options.path = folder_.path("");
  EXPECT_FALSE(SpanFile::open(options, clock_).ok());
}

/// No file of this process gets longer.
class LimitOfFiles {
 public:
  explicit LimitOfFiles(rlim_t most) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{most, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~LimitOfFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  LimitOfFiles(const LimitOfFiles&) = delete;
  LimitOfFiles& operator=(const LimitOfFiles&) = delete;

 private:
  using Handler = void (*)(int);
  rlimit before_{};
  Handler handler_;
};

TEST_F(SpanFileTest, HasOnlyWholeLinesWhenThereIsNoRoom) {
  open();
  give(10);
  ASSERT_EQ(settled(10).written, 10U);
  const std::uint64_t before = std::filesystem::file_size(path_);
  {
    const LimitOfFiles limit(before + 100);  // in the middle of a line
    give(100);
    EXPECT_EQ(settled(110).unwritten, 100U);
    EXPECT_EQ(std::filesystem::file_size(path_), before);
    give(100);
    EXPECT_EQ(settled(210).unwritten, 200U);
    ASSERT_EQ(notices().size(), 1U);  // not again and again
    EXPECT_NE(notices()[0].find("cannot write the file of spans"), std::string::npos);
  }
  give(5);
  EXPECT_EQ(settled(215).written, 15U);
  ASSERT_EQ(notices().size(), 2U);
  EXPECT_EQ(notices()[1], "the file of spans can be written again");
  close();
  EXPECT_EQ(spans_in(path_), 15U);
}

}  // namespace
}  // namespace leasehold::server
