// Scripts of lock libraries: which are recognised, and what each does.
#include <leasehold/server/commands/scripts.h>
#include <leasehold/tests/server/session_fixture.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using namespace std::chrono_literals;
using ::testing::StartsWith;

// In the shortest form: differences in blanks, comments and quotes do not matter. The texts of
// redis-py itself: tests/process/foreign_locks.py.
constexpr const char* kDelete =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";
constexpr const char* kTouch =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else "
    "return 0 end";
constexpr const char* kTouchSeconds =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('expire',KEYS[1],ARGV[2]) else "
    "return 0 end";
constexpr const char* kTouchOrSet =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) "
    "elseif redis.call('set',KEYS[1],ARGV[1],'px',ARGV[2],'nx') then return 1 else return 0 end";
constexpr const char* kDeleteOrMinusOne =
    "local val=redis.call('get',KEYS[1]) if val==ARGV[1] then return redis.call('del',KEYS[1]) "
    "elseif val==false then return -1 else return 0 end";
constexpr const char* kHeld =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pttl',KEYS[1]) else return -3 "
    "end";
constexpr const char* kExtend =
    "local token=redis.call('get',KEYS[1]) if not token or token~=ARGV[1] then return 0 end local "
    "expiration=redis.call('pttl',KEYS[1]) if not expiration then expiration=0 end if expiration<0 "
    "then return 0 end local newttl=ARGV[2] if ARGV[3]=='0' then newttl=ARGV[2]+expiration end "
    "redis.call('pexpire',KEYS[1],newttl) return 1";
constexpr const char* kAcquireAll =
    "for i,key in ipairs(KEYS) do if redis.call('exists',key)==1 then return 0 end end for i,key "
    "in ipairs(KEYS) do redis.call('set',key,ARGV[1],'px',ARGV[2]) end return #KEYS";
constexpr const char* kExtendAll =
    "for i,key in ipairs(KEYS) do if redis.call('get',key)~=ARGV[1] then return 0 end end for "
    "i,key in ipairs(KEYS) do redis.call('set',key,ARGV[1],'px',ARGV[2]) end return #KEYS";
constexpr const char* kReleaseAll =
    "local count=0 for i,key in ipairs(KEYS) do if redis.call('get',key)==ARGV[1] then "
    "redis.pcall('del',key) count=count+1 end end return count";

class ScriptsTest : public SessionTest {
 protected:
  ScriptsTest() {
    groups_.home().lease_keeper = &keeper_;
    node_.grant_lease(1h);
  }
  /// Sends words, and commits the commands that they propose.
  std::string call(const std::vector<std::string>& words) {
    std::string out = send(words);
    node_.commit_all();
    out += pump();
    EXPECT_TRUE(keeper_.look(raft::Term(1), 0));
    return out;
  }
  std::string eval(const std::string& text, std::vector<std::string> keys,
                   const std::vector<std::string>& args) {
    std::vector<std::string> words{"EVAL", text, std::to_string(keys.size())};
    words.insert(words.end(), keys.begin(), keys.end());
    words.insert(words.end(), args.begin(), args.end());
    return call(words);
  }
  std::string left(const std::string& key) { return call({"PTTL", key}); }

  kv::LeaseKeeper keeper_{
      node_.clock(), [this](std::uint64_t cursor) { return node_.store().lease_changes(cursor); }};
};

TEST(ScriptText, ADigestIsThatOfRedis) {
  EXPECT_EQ(script_digest("return 1"), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
  EXPECT_EQ(script_digest(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
}

TEST(ScriptText, BlanksCommentsAndQuotesDoNotCount) {
  EXPECT_EQ(script_normal_form("a  = 'GET' -- why\n\tb==c  d "), "a=\"get\"b==c d");
  EXPECT_EQ(script_normal_form("  return\n\r1--"), "return 1");
  EXPECT_TRUE(
      find_script("\n-- release\nif redis.call(\"GET\", KEYS[1]) == ARGV[1] then\n return "
                  "redis.call('DEL', KEYS[1])\nelse\n\treturn 0 -- not ours\nend\n"));
}

TEST(ScriptText, DifferentTextsStayDifferent) {
  for (const char* text : {"--[[ long ]] return 1", "return [[x]]", "return 'a\\n'", "return 'open",
                           "return \"a", "return 'a\"b'", "return [==[x]==]"}) {
    EXPECT_EQ(script_normal_form(text), std::nullopt) << text;
  }
  EXPECT_EQ(script_normal_form(std::string(kScriptBytesMax + 1, 'x')), std::nullopt);
  EXPECT_NE(script_normal_form("return a b"), script_normal_form("return ab"));
  for (std::string text : {kDelete, kTouch, kAcquireAll}) {
    ASSERT_TRUE(find_script(text));
    const std::size_t at =
        text.find("KEYS[1]") == std::string::npos ? text.find("KEYS") : text.find("KEYS[1]");
    text.replace(at, 4, "ARGS");
    EXPECT_FALSE(find_script(text)) << text;
  }
  EXPECT_FALSE(find_script(std::string(kDelete) + " return 1"));
  EXPECT_FALSE(find_script(""));
}

TEST_F(ScriptsTest, OnlyTheHolderReleasesALock) {
  call({"SET", "k", "me", "NX", "PX", "1000"});
  EXPECT_EQ(eval(kDelete, {"k"}, {"you"}), ":0\r\n");
  EXPECT_EQ(eval(kDeleteOrMinusOne, {"k"}, {"you"}), ":0\r\n");
  EXPECT_EQ(eval(kDelete, {"k"}, {"me"}), ":1\r\n");
  EXPECT_EQ(eval(kDelete, {"k"}, {"me"}), ":0\r\n");
  EXPECT_EQ(eval(kDeleteOrMinusOne, {"k"}, {"me"}), ":-1\r\n");
  call({"SET", "k", "me"});
  EXPECT_EQ(eval(kDeleteOrMinusOne, {"k"}, {"me"}), ":1\r\n");
}

TEST_F(ScriptsTest, OnlyTheHolderExtendsALock) {
  EXPECT_EQ(eval(kTouch, {"k"}, {"me", "1000"}), ":0\r\n");
  call({"SET", "k", "me", "PX", "1000"});
  EXPECT_EQ(eval(kTouch, {"k"}, {"you", "5000"}), ":0\r\n");
  EXPECT_EQ(eval(kTouch, {"k"}, {"me", "5000"}), ":1\r\n");
  EXPECT_EQ(left("k"), ":5000\r\n");
  EXPECT_EQ(eval(kTouchSeconds, {"k"}, {"me", "5"}), ":1\r\n");
  EXPECT_EQ(left("k"), ":5000\r\n");
  EXPECT_EQ(eval(kTouch, {"k"}, {"me", "0"}), ":1\r\n") << "its time is over";
  EXPECT_EQ(left("k"), ":-2\r\n");
  EXPECT_EQ(eval(kTouchOrSet, {"k"}, {"me", "2000"}), ":1\r\n");
  EXPECT_EQ(eval(kTouchOrSet, {"k"}, {"me", "3000"}), ":1\r\n");
  EXPECT_EQ(left("k"), ":3000\r\n");
  EXPECT_EQ(eval(kTouchOrSet, {"k"}, {"you", "9000"}), ":0\r\n");
  EXPECT_EQ(left("k"), ":3000\r\n");
  EXPECT_EQ(eval(kTouch, {"k"}, {"me", "x"}), "-ERR value is not an integer or out of range\r\n");
}

TEST_F(ScriptsTest, AnExtensionMayComeOnTop) {
  call({"SET", "k", "me", "PX", "10000"});
  node_.manual_clock().advance(4s);
  EXPECT_EQ(eval(kExtend, {"k"}, {"you", "1000", "0"}), ":0\r\n");
  EXPECT_EQ(eval(kExtend, {"k"}, {"me", "1000", "0"}), ":1\r\n");
  EXPECT_EQ(left("k"), ":7000\r\n");
  EXPECT_EQ(eval(kExtend, {"k"}, {"me", "1000", "1"}), ":1\r\n");
  EXPECT_EQ(left("k"), ":1000\r\n");
  call({"PERSIST", "k"});
  EXPECT_EQ(eval(kExtend, {"k"}, {"me", "1000", "0"}), ":0\r\n");
  EXPECT_EQ(eval(kExtend, {"k"}, {"me", "1000", "1"}), ":0\r\n");
}

// Both were sent before either was applied: neither shortens the other.
TEST_F(ScriptsTest, TwoExtensionsUnderWayBothCount) {
  call({"SET", "k", "me", "PX", "10000"});
  node_.manual_clock().advance(4s);
  const std::vector<std::string> extend{"EVAL", kExtend, "1", "k", "me", "1000", "0"};
  EXPECT_EQ(send(extend) + send(extend), "");
  node_.commit_all();
  EXPECT_EQ(pump(), ":1\r\n:1\r\n");
  EXPECT_EQ(left("k"), ":8000\r\n");
}

TEST_F(ScriptsTest, TheTimeLeftIsReturned) {
  EXPECT_EQ(eval(kHeld, {"k"}, {"me"}), ":-3\r\n");
  call({"SET", "k", "me", "PX", "1000"});
  EXPECT_EQ(eval(kHeld, {"k"}, {"you"}), ":-3\r\n");
  EXPECT_EQ(eval(kHeld, {"k"}, {"me"}), ":1000\r\n");
  call({"PERSIST", "k"});
  EXPECT_EQ(eval(kHeld, {"k"}, {"me"}), ":-1\r\n");
}

TEST_F(ScriptsTest, SeveralKeysAreOneLock) {
  EXPECT_EQ(eval(kAcquireAll, {"a", "b"}, {"me", "1000"}), ":2\r\n");
  EXPECT_EQ(eval(kAcquireAll, {"b", "c"}, {"you", "1000"}), ":0\r\n");
  EXPECT_EQ(left("c"), ":-2\r\n");
  EXPECT_EQ(eval(kExtendAll, {"a", "b"}, {"me", "3000"}), ":2\r\n");
  EXPECT_EQ(left("b"), ":3000\r\n");
  EXPECT_EQ(eval(kExtendAll, {"a", "c"}, {"me", "9000"}), ":0\r\n");
  EXPECT_EQ(left("a"), ":3000\r\n");
  call({"SET", "b", "you"});
  EXPECT_EQ(eval(kReleaseAll, {"a", "b"}, {"me"}), ":1\r\n");
  EXPECT_EQ(call({"EXISTS", "a", "b"}), ":1\r\n");
  EXPECT_EQ(eval(kAcquireAll, {"a"}, {"me", "0"}), "-ERR invalid expire time in 'set' command\r\n");
  const std::string with_database =
      "redis.pcall('select',tonumber(ARGV[1])) local count=0 for "
      "i,key in ipairs(KEYS) do if redis.call('get',key)==ARGV[2] "
      "then redis.pcall('del',key) count=count+1 end end return count";
  EXPECT_EQ(eval(with_database, {"b"}, {"0", "you"}), ":1\r\n");
  EXPECT_THAT(eval(with_database, {"b"}, {"1", "you"}), StartsWith("-ERR DB index"));
}

TEST_F(ScriptsTest, AnOldWayToAcquire) {
  const std::string text = "return redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2])";
  EXPECT_EQ(eval(text, {"k"}, {"me", "1000"}), "+OK\r\n");
  EXPECT_EQ(eval(text, {"k"}, {"you", "1000"}), "$-1\r\n");
  EXPECT_EQ(left("k"), ":1000\r\n");
}

TEST_F(ScriptsTest, ADigestIsKnownOnceItsTextWasSeen) {
  const std::string digest = script_digest(kDelete);
  const std::string none = "-NOSCRIPT No matching script. Please use EVAL.\r\n";
  call({"SET", "k", "me"});
  EXPECT_EQ(call({"EVALSHA", digest, "1", "k", "me"}), none);
  EXPECT_EQ(call({"SCRIPT", "LOAD", kDelete}), "$40\r\n" + digest + "\r\n");
  EXPECT_EQ(call({"SCRIPT", "EXISTS", digest, "x"}), "*2\r\n:1\r\n:0\r\n");
  EXPECT_EQ(call({"EVALSHA", digest, "1", "k", "me"}), ":1\r\n");
  EXPECT_EQ(call({"SCRIPT", "FLUSH"}), "+OK\r\n");
  EXPECT_EQ(call({"EVALSHA", digest, "1", "k", "me"}), none);
  eval(kDelete, {"k"}, {"me"});
  EXPECT_EQ(call({"EVALSHA", digest, "1", "k", "me"}), ":0\r\n");
}

TEST_F(ScriptsTest, TheOldestDigestIsForgotten) {
  const std::string first = script_digest(kDelete);
  call({"SCRIPT", "LOAD", kDelete});
  std::string text = kDelete;
  for (int i = 0; i < 1023; ++i) call({"SCRIPT", "LOAD", text += ' '});
  EXPECT_EQ(call({"SCRIPT", "EXISTS", first}), "*1\r\n:1\r\n");
  call({"SCRIPT", "LOAD", text += ' '});
  EXPECT_EQ(call({"SCRIPT", "EXISTS", first, script_digest(text)}), "*2\r\n:0\r\n:1\r\n");
}

TEST_F(ScriptsTest, EverythingElseIsRefusedWithTheReason) {
  EXPECT_THAT(eval("return 1", {}, {}), StartsWith("-ERR there is no Lua here"));
  EXPECT_THAT(call({"SCRIPT", "LOAD", "return 1"}), StartsWith("-ERR there is no Lua here"));
  EXPECT_THAT(eval(kDelete, {}, {"me"}), StartsWith("-ERR this script takes a key and 1"));
  EXPECT_THAT(eval(kTouch, {"k"}, {"me"}), StartsWith("-ERR this script takes a key and 2"));
  EXPECT_EQ(call({"EVAL", kDelete, "x", "k"}), "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(call({"EVAL", kDelete, "-1", "k"}), "-ERR Number of keys can't be negative\r\n");
  EXPECT_EQ(call({"EVAL", kDelete, "2", "k"}),
            "-ERR Number of keys can't be greater than number of args\r\n");
  call({"MULTI"});
  EXPECT_THAT(eval(kDelete, {"k"}, {"me"}), StartsWith("-ERR 'eval' cannot be in a transaction"));
}

}  // namespace
}  // namespace leasehold::server
