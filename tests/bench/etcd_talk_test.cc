#include <leasehold/bench/load/etcd_talk.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "etcd_frames.h"

namespace leasehold::bench {
namespace {

struct Got {
  std::uint64_t number;
  ReplyView::Kind kind;
  std::string text;
};

class Gathered final : public Talk::Replies {
 public:
  bool replied(std::uint64_t number, const ReplyView& reply) override {
    got.push_back({number, reply.kind, std::string(reply.text)});
    return true;
  }
  std::vector<Got> got;
};

Request get_of(std::uint64_t key) {
  Request request;
  request.key = key;
  return request;
}

/// A conversation: its streams are 1, 3, 5 and so on.
struct Conversation {
  explicit Conversation(bool serializable = false) : talk("127.0.0.1:2379", serializable) {}

  void read(std::uint64_t number) {
    std::string unused;
    talk.ask(get_of(number), number, unused);
  }
  /// The calls that the client has sent since the last time.
  std::vector<SeenCall> sent() {
    std::string output;
    talk.take_output(output);
    std::string ignored;
    return client.take(output, ignored);
  }
  Result<void> arrives(const std::string& bytes) { return talk.arrived(bytes, replies); }
  std::vector<Got>& got() { return replies.got; }

  EtcdTalk talk;
  ClientBytes client;
  Gathered replies;
};

constexpr auto kValue = ReplyView::Kind::value;
constexpr auto kNull = ReplyView::Kind::null;
constexpr auto kError = ReplyView::Kind::error;

TEST(EtcdTalk, CallsAreThoseOfEtcdsApi) {
  Conversation with(true);
  with.read(7);
  Request put;
  put.kind = OperationKind::update;
  put.key = 8;
  put.value = "value";
  Request scan = get_of(9);
  scan.kind = OperationKind::scan;
  scan.count = 3;
  std::string unused;
  with.talk.ask(put, 1, unused);
  with.talk.ask(scan, 2, unused);
  with.talk.ask_status(3);
  const auto calls = with.sent();
  ASSERT_EQ(calls.size(), 4U);
  for (const SeenCall& call : calls) {
    EXPECT_EQ(call.header(":method"), "POST");
    EXPECT_EQ(call.header(":scheme"), "http");
    EXPECT_EQ(call.header(":authority"), "127.0.0.1:2379");
    EXPECT_EQ(call.header("content-type"), "application/grpc");
    EXPECT_EQ(call.header("te"), "trailers");
  }
  // Field 1, 14 bytes: the key. Field 7: serializable.
  EXPECT_EQ(calls[0].header(":path"), "/etcdserverpb.KV/Range");
  EXPECT_EQ(calls[0].message, "\x0a\x0ekey:0000000007\x38\x01");
  EXPECT_EQ(calls[1].header(":path"), "/etcdserverpb.KV/Put");
  EXPECT_EQ(calls[1].message, "\x0a\x0ekey:0000000008\x12\x05value");
  // Field 2: the end of the range. Field 3: at most so many keys.
  EXPECT_EQ(calls[2].header(":path"), "/etcdserverpb.KV/Range");
  EXPECT_EQ(calls[2].message, "\x0a\x0ekey:0000000009\x12\x0ekey:0000000012\x18\x03\x38\x01");
  EXPECT_EQ(calls[3].header(":path"), "/etcdserverpb.Maintenance/Status");
  EXPECT_EQ(calls[3].message, "");
}

TEST(EtcdTalk, AReadIsLinearizableUnlessItIsAskedForOtherwise) {
  Conversation with(false);
  with.read(7);
  EXPECT_EQ(with.sent().at(0).message, "\x0a\x0ekey:0000000007");
}

TEST(EtcdTalk, RepliesMayOvertakeEachOtherAndComeByteByByte) {
  Conversation with;
  for (std::uint64_t i = 0; i < 3; ++i) with.read(i);
  EXPECT_EQ(with.sent().size(), 3U);
  const std::string bytes = settings_frame() + good_reply(5, kOneKey) + opening(1) +
                            good_reply(3, kNoKey) + message_frame(1, kOneKey) + closing(1);
  for (const char byte : bytes) ASSERT_TRUE(with.arrives(std::string(1, byte)).ok());
  ASSERT_EQ(with.got().size(), 3U);
  EXPECT_EQ(with.got()[0].number, 2U);
  EXPECT_EQ(with.got()[0].kind, kValue);
  EXPECT_EQ(with.got()[1].number, 1U);
  EXPECT_EQ(with.got()[1].kind, kNull);  // there is no such key
  EXPECT_EQ(with.got()[2].number, 0U);
  EXPECT_EQ(with.got()[2].kind, kValue);
}

TEST(EtcdTalk, AnErrorOfEtcdIsAReplyWithItsName) {
  Conversation with;
  for (std::uint64_t i = 0; i < 3; ++i) with.read(i);
  with.sent();
  ASSERT_TRUE(
      with.arrives(settings_frame() + error_reply(1, "14", "etcdserver: no%20leader%")).ok());
  ASSERT_TRUE(with.arrives(opening(3) + closing(3, "4") + error_reply(5, "99", "")).ok());
  ASSERT_EQ(with.got().size(), 3U);
  for (const Got& got : with.got()) EXPECT_EQ(got.kind, kError);
  EXPECT_EQ(with.got()[0].text, "UNAVAILABLE etcdserver: no leader%");
  EXPECT_EQ(error_word(with.got()[1].text), "DEADLINE");
  EXPECT_EQ(error_word(with.got()[2].text), "MALFORMED");
}

TEST(EtcdTalk, AResetStreamIsOneErrorAndTheOthersGoOn) {
  Conversation with;
  with.read(0);
  with.read(1);
  with.sent();
  const std::string cancel = frame(kReset, kNoFlags, 1, big_endian(8, 4));
  ASSERT_TRUE(with.arrives(settings_frame() + opening(1) + cancel + good_reply(3, kOneKey)).ok());
  ASSERT_EQ(with.got().size(), 2U);
  EXPECT_EQ(with.got()[0].kind, kError);
  EXPECT_EQ(with.got()[0].text, "RESET CANCEL");
  EXPECT_EQ(with.got()[1].kind, kValue);
}

TEST(EtcdTalk, HalfAnswersAreErrors) {
  const std::string half = frame(kData, kNoFlags, 1, std::string("\0\0\0\0\x09xx", 7));
  const std::string compressed = frame(kData, kNoFlags, 1, std::string("\x01\0\0\0\0", 5));
  const std::string nonsense = message_frame(1, "\xff\xff\xff");
  const HeaderList web = {{":status", "200"}, {"content-type", "text/html"}};
  const HeaderList broken = {{":status", "502"}, {"content-type", "text/html"}};
  const std::pair<std::string, const char*> cases[] = {
      {opening(1) + half + closing(1), "MALFORMED"},
      {opening(1) + compressed + closing(1), "MALFORMED"},
      {opening(1) + nonsense + closing(1), "MALFORMED"},
      {opening(1) + closing(1), "MALFORMED"},  // well, and yet without a message
      {opening(1) + frame(kData, kEndStream, 1, ""), "NO_STATUS"},
      {headers_frame(1, web, true), "NOT_GRPC"},
      {headers_frame(1, broken, true), "HTTP_502"},
  };
  for (const auto& [bytes, word] : cases) {
    Conversation with;
    with.read(0);
    with.sent();
    ASSERT_TRUE(with.arrives(settings_frame() + bytes).ok()) << word;
    ASSERT_EQ(with.got().size(), 1U) << word;
    EXPECT_EQ(with.got()[0].kind, kError) << word;
    EXPECT_EQ(error_word(with.got()[0].text), word);
  }
}

TEST(EtcdTalk, AServerThatGoesAnswersWhatItTook) {
  Conversation with;
  for (std::uint64_t i = 0; i < 3; ++i) with.read(i);
  with.sent();
  EXPECT_FALSE(with.talk.ending());
  ASSERT_TRUE(with.arrives(settings_frame() + go_away(3)).ok());
  EXPECT_TRUE(with.talk.ending());
  // The third one it never took.
  ASSERT_EQ(with.got().size(), 1U);
  EXPECT_EQ(with.got()[0].number, 2U);
  EXPECT_EQ(with.got()[0].text, "RESET REFUSED_STREAM");
  ASSERT_TRUE(with.arrives(good_reply(1, kOneKey) + good_reply(3, kOneKey)).ok());
  ASSERT_EQ(with.got().size(), 3U);
  EXPECT_EQ(with.got()[1].kind, kValue);
  EXPECT_EQ(with.got()[2].kind, kValue);
}

TEST(EtcdTalk, CallsWaitForAServerThatTakesFewAtOnce) {
  Conversation with;
  const std::string one_stream = big_endian(3, 2) + big_endian(1, 4);
  ASSERT_TRUE(with.arrives(frame(kSettings, kNoFlags, 0, one_stream)).ok());
  with.read(0);
  with.read(1);
  EXPECT_EQ(with.sent().size(), 1U);
  ASSERT_TRUE(with.arrives(good_reply(1, kOneKey)).ok());
  EXPECT_EQ(with.sent().size(), 1U);
}

TEST(EtcdTalk, ALargeValueWaitsForTheWindowOfTheServer) {
  Conversation with;
  ASSERT_TRUE(with.arrives(settings_frame()).ok());
  const std::string value(100'000, 'v');
  Request put;
  put.kind = OperationKind::update;
  put.value = value;
  std::string unused;
  with.talk.ask(put, 0, unused);
  EXPECT_EQ(with.sent().size(), 0U);  // 65,535 bytes of it
  ASSERT_TRUE(with.arrives(window_frame(1, 1U << 20U) + window_frame(0, 1U << 20U)).ok());
  const auto calls = with.sent();
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].message.substr(calls[0].message.size() - value.size()), value);
}

TEST(EtcdTalk, BadFramesEndTheConnection) {
  const std::string bad[] = {
      frame(kData, kNoFlags, 0, "x"),                               // of no stream
      frame(kHeaders, kEndHeaders, 1, "\x80"),                      // index 0 of HPACK
      frame(kPing, kNoFlags, 0, "short"),                           // of another size
      big_endian(1U << 20U, 3) + std::string("\0\0\0\0\0\x01", 6),  // larger than was allowed
      frame(kSettings, kNoFlags, 0, "odd"),                         //
      headers_frame(2, {{":status", "200"}}, true),                 // a stream of the server's
  };
  for (const std::string& bytes : bad) {
    Conversation with;
    with.read(0);
    with.sent();
    ASSERT_TRUE(with.arrives(settings_frame()).ok());
    const auto taken = with.arrives(bytes);
    ASSERT_FALSE(taken.ok()) << testing::PrintToString(bytes);
    EXPECT_EQ(taken.error().message, "malformed HTTP/2");
  }
}

TEST(EtcdTalk, WhatElseAnswersIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP/1"},
      {"\x15\x03\x01\x00\x02\x02\x16......", "TLS"},
      {"-ERR unknown command 'PRI'\r\n", "Redis"},
      {"SSH-2.0-OpenSSH_9.2\r\n", "malformed"},
  };
  for (const auto& [bytes, word] : cases) {
    Conversation with;
    const auto taken = with.arrives(std::string(bytes, std::string_view(bytes).size() + 9));
    ASSERT_FALSE(taken.ok()) << bytes;
    EXPECT_NE(taken.error().message.find(word), std::string::npos) << taken.error().message;
  }
}

}  // namespace
}  // namespace leasehold::bench
