// What a command costs at most, whatever its words are.
#include <leasehold/server/front/store_reader.h>
#include <leasehold/tests/server/session_fixture.h>
#include <leasehold/tests/server/store_over.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Notes what is asked for at most in one step.
class StoreWithNotes final : public StoreOver {
 public:
  using StoreOver::StoreOver;
  Result<std::vector<std::string>> keys_after(std::optional<std::string_view> after,
                                              std::size_t count) const override {
    names = std::max(names, count);
    return StoreOver::keys_after(after, count);
  }
  Result<std::vector<std::optional<kv::Value>>> get_all(const std::vector<std::string_view>& keys,
                                                        kv::Load load) const override {
    values = std::max(values, keys.size());
    return StoreOver::get_all(keys, load);
  }
  mutable std::size_t names = 0;
  mutable std::size_t values = 0;
};

class SessionCosts : public SessionTest {
 protected:
  SessionCosts() {
    node_.grant_lease(std::chrono::hours(1));
    session_ = std::make_shared<Session>(
        Session::Context{counted_, state_, &state_.counters[0], &executor_, &executor_, &hubs_}, 7,
        "127.0.0.1:5", [this] { ++progress_; });
  }
  /// `count` keys of so many bytes each.
  void fill(std::size_t count, std::size_t bytes) {
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < count; ++i) {
      keys.push_back(std::to_string(i));
      keys.back().resize(std::max(bytes, keys.back().size()), 'k');
    }
    for (std::size_t at = 0; at < count; at += 200) {
      kv::MSet some;
      for (std::size_t i = at; i < std::min(count, at + 200); ++i)
        some.pairs.emplace_back(keys[i], "");
      node_.propose(kv::encode_command(some).value(), node::CallOptions(std::chrono::seconds(1)),
                    [](const replica::ProposeResult&) {});
      node_.commit_all();
    }
  }
  void set(const std::string& key, const std::string& value) {
    node_.propose(kv::encode_command(kv::Set{key, value}).value(),
                  node::CallOptions(std::chrono::seconds(1)), [](const replica::ProposeResult&) {});
    node_.commit_all();
  }
  /// How many turns the bytes take.
  std::size_t turns(const std::string& bytes) {
    std::size_t count = 0;
    input_ = bytes;
    do {
      input_.erase(0, session_->process(input_));
      ++count;
    } while (session_->turn_over());
    EXPECT_EQ(input_, "");
    return count;
  }

  StoreWithNotes store_{node_.store()};
  ServedGroups counted_{{ServedGroup{node_, store_, node_.health()}}};
};

TEST_F(SessionCosts, NamesOfCommandsAreAnsweredAsOftenAsThereAreCommands) {
  for (const char* what : {"DOCS", "INFO"}) {
    std::vector<std::string> words(60'000, "leasehold");
    words[0] = "COMMAND";
    words[1] = what;
    EXPECT_THAT(send(words), AllOf(StartsWith("-ERR"), HasSubstr("names")));
    words.resize(12);
    const std::string some = send(words);
    EXPECT_THAT(some, StartsWith(words[1] == "INFO" ? "*10\r\n" : "*20\r\n"));
    words.resize(3);
    const std::string one = send(words);
    EXPECT_LT(some.size(), 10 * one.size() + 100);
  }
}

TEST_F(SessionCosts, KeysAreReadInSteps) {
  fill(3000, 10);
  EXPECT_THAT(send({"KEYS", "*"}), StartsWith("*3000\r\n"));
  EXPECT_THAT(send({"KEYS", "1*"}), StartsWith("*1111\r\n"));
  EXPECT_LE(store_.names, 256U);
  const std::string slot = send({"CLUSTER", "KEYSLOT", "17kkkkkkkk"});
  EXPECT_THAT(send({"CLUSTER", "COUNTKEYSINSLOT", slot.substr(1, slot.size() - 3)}),
              AllOf(StartsWith(":"), ::testing::Not(":0\r\n")));
  EXPECT_LE(store_.names, 256U);
}

TEST_F(SessionCosts, NamesThatAreTooLongTogetherAreNotRead) {
  fill(1100, kv::kKeyBytesMax);
  EXPECT_THAT(send({"KEYS", "x"}), AllOf(StartsWith("-ERR"), HasSubstr("SCAN")));
  EXPECT_THAT(send({"CLUSTER", "COUNTKEYSINSLOT", "1"}), StartsWith("-ERR"));
}

TEST_F(SessionCosts, AKeyThatIsNamedOftenIsLookedAtOnce) {
  set("a", "1");
  set("b", "1");
  std::vector<std::string> words(30'000, "a");
  words[0] = "EXISTS";
  words.insert(words.end(), {"b", "c", "c", "b"});
  EXPECT_EQ(send(words), ":30001\r\n");
  EXPECT_EQ(store_.values, 3U);
}

TEST_F(SessionCosts, WhatIsLoadedAndNotShownIsWorkOfTheTurn) {
  set("large", std::string(2 * kTurnWork * kReplyBytesPerWord, 'v'));
  EXPECT_EQ(turns("STRLEN x\r\nSTRLEN x\r\nSTRLEN x\r\n"), 1U);
  EXPECT_GE(turns("STRLEN large\r\nSTRLEN large\r\nSTRLEN large\r\n"), 3U);
  EXPECT_GE(turns("GETRANGE large 0 1\r\nGETRANGE large 0 1\r\nGETRANGE large 0 1\r\n"), 3U);
  EXPECT_GE(turns("EXISTS large\r\nEXISTS large\r\nEXISTS large\r\n"), 3U);
  EXPECT_GE(turns("EXISTS large x\r\nEXISTS large x\r\nEXISTS large x\r\n"), 3U);
  EXPECT_GE(turns("WATCH large\r\nWATCH large\r\nWATCH large\r\n"), 3U);
}

TEST_F(SessionCosts, AWatchOfManyKeysTakesTurns) {
  set("5", "1");
  std::string watch;
  append_array(watch, 1001);
  append_bulk(watch, "WATCH");
  for (int i = 0; i < 1000; ++i) append_bulk(watch, std::to_string(i));
  EXPECT_GE(turns(watch), 1000 / kTurnWork);
  EXPECT_LE(store_.values, kShortReadWords);
  EXPECT_EQ(std::exchange(session_->output(), {}), "+OK\r\n");
  EXPECT_EQ(feed("MULTI\r\nSET k v\r\nEXEC\r\n"), "+OK\r\n+QUEUED\r\n");
  node_.commit_all();
  EXPECT_EQ(pump(), "*1\r\n+OK\r\n");
  turns(watch);
  EXPECT_EQ(std::exchange(session_->output(), {}), "+OK\r\n");
  set("999", "1");
  EXPECT_EQ(feed("MULTI\r\nSET k v\r\nEXEC\r\n"), "+OK\r\n+QUEUED\r\n");
  node_.commit_all();
  EXPECT_EQ(pump(), "*-1\r\n");
}

}  // namespace
}  // namespace leasehold::server
