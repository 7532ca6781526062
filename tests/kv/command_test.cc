#include <leasehold/base/random.h>
#include <leasehold/kv/command.h>
#include <leasehold/tests/kv/command_text.h>

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::kv {
namespace {

using testing::encoded_text;
using testing::hex;

ErrorCode encode_error(const Command& command) {
  const auto bytes = encode_command(command);
  EXPECT_FALSE(bytes);
  return bytes.error().code;
}

TEST(CommandCodec, ATimeToLiveHasBounds) {
  for (const KeyTime ttl : {KeyTime(-1), KeyTime(1), grant::kLeaseTtlMax + KeyTime(1)}) {
    Set set{"k", "v"};
    set.ttl = ttl;
    EXPECT_EQ(encode_command(set).error().code, ErrorCode::invalid_argument);
    EXPECT_FALSE(encode_command(ExpireKey{"k", TimeChange::set, ttl}));
    EXPECT_FALSE(encode_command(MSet{MSetCondition::none, {{"k", "v"}}, ttl}));
  }
  ExpireKey seen{"k", TimeChange::add, grant::kLeaseTtlMax};
  EXPECT_TRUE(encode_command(seen));
  seen.seen.left = lease::Duration(-1);
  EXPECT_FALSE(encode_command(seen));
}

TEST(CommandCodec, AKeyHasOneLeaseAtMost) {
  Set set{"k", "v"};
  set.ttl = grant::kLeaseTtlMin;
  set.keep_lease = true;
  EXPECT_FALSE(encode_command(set));
  set.keep_lease = false;
  set.lease = grant::LeaseId(1);
  EXPECT_FALSE(encode_command(set));
}

TEST(CommandCodec, ASetHasOneEncodingWithALease) {
  Set both{"k", "v"};
  both.keep_lease = true;
  both.lease = grant::LeaseId(1);
  EXPECT_EQ(encode_error(both), ErrorCode::invalid_argument);
  Set leased{"k", "v"};
  leased.lease = grant::LeaseId(1);
  std::string bytes = encoded_text(leased);
  bytes[10] = 0;
  EXPECT_EQ(decode_command(bytes).error().code, ErrorCode::malformed);
  bytes = encoded_text(Set{"k", "v"});
  bytes[2] = 64;
  EXPECT_EQ(decode_command(bytes).error().code, ErrorCode::malformed);
  EXPECT_EQ(encode_error(RenewLeases{}), ErrorCode::invalid_argument);
  EXPECT_EQ(encode_error(RenewLeases{std::vector<grant::LeaseId>(kCommandLeasesMax + 1)}),
            ErrorCode::invalid_argument);
  EXPECT_EQ(encode_error(LeaseList{grant::LeaseId(0), 0}), ErrorCode::invalid_argument);
}

TEST(CommandCodec, ACommandByNameNamesOneLease) {
  const std::string longest(grant::kLeaseNameBytesMax, 'n');
  EXPECT_TRUE(encode_command(WithNamedLease{longest, Set{"k", "v"}}));
  Set kept{"k", "v"};
  kept.keep_lease = true;
  Set timed{"k", "v"};
  timed.ttl = grant::kLeaseTtlMin;
  const std::vector<WithNamedLease> wrong = {{"", Set{"k", "v"}},
                                             {longest + "n", Set{"k", "v"}},
                                             {"n", kept},
                                             {"n", timed},
                                             {"n", RevokeLease{grant::LeaseId(1)}},
                                             {"n", AttachKey{grant::LeaseId(1), "k"}},
                                             {"n", SetSequential{"p", "v", grant::LeaseId(1)}}};
  for (const WithNamedLease& named : wrong) {
    EXPECT_EQ(encode_error(named), ErrorCode::invalid_argument);
  }
  std::string bytes = encoded_text(WithNamedLease{"n", RevokeLease{}});
  bytes.back() = 1;
  EXPECT_EQ(decode_command(bytes).error().code, ErrorCode::invalid_argument);
  bytes = encoded_text(WithNamedLease{"n", Set{"k", "v"}});
  bytes[8] = 6;  // get_del, which is about no lease
  EXPECT_EQ(decode_command(bytes).error().code, ErrorCode::malformed);
  bytes[8] = 17;
  EXPECT_EQ(decode_command(bytes).error().code, ErrorCode::malformed);
  EXPECT_EQ(encode_error(RenewNamed{}), ErrorCode::invalid_argument);
  EXPECT_EQ(encode_error(RenewNamed{{{grant::LeaseId(1), "n"}}}), ErrorCode::invalid_argument);
  EXPECT_EQ(encode_error(RenewNamed{{{grant::LeaseId(0), ""}}}), ErrorCode::invalid_argument);
}

// Whatever decodes is the one encoding of what it decodes to; so a round trip holds as well.

void expect_read_back(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    const std::string bytes = encoded_text(command);
    const auto decoded = decode_command(bytes);
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(decoded.value().index(), command.index());
    EXPECT_EQ(encoded_text(decoded.value()), bytes);
  }
}

TEST(CommandCodec, DecodesWhatWasEncoded) {
  const std::string big(1000, 'x');
  const std::string set = encoded_text(Set{"k", "v"});
  const std::string transaction = encoded_text(Transaction{{{"a", 1}}, {Size{}}});
  const std::vector<Command> commands = {
      OpenSession{},
      CloseSession{replica::SessionId(7)},
      TouchSession{replica::SessionId(7)},
      ExpireSession{replica::SessionId(7), 8},
      Once{replica::SessionId(7), 9, 8, set},
      Once{replica::SessionId(0), 0, 0, transaction},
      Set{"", ""},
      Set{"key", big, SetCondition::xx, true},
      Set{big, "v", SetCondition::nx, false},
      Del{{"a"}},
      Del{{"a", "a", big, ""}},
      IncrBy{"", 0},
      IncrBy{"k", std::numeric_limits<std::int64_t>::min()},
      IncrBy{"k", std::numeric_limits<std::int64_t>::max()},
      Append{"", ""},
      SetRange{7, "k", "v"},
      GetDel{"k"},
      MSet{MSetCondition::none, {{"a", big}, {"", ""}}},
      Rename{true, "from", "to"},
      Get{""},
      Exists{{"a", "b"}},
      MGet{{"a", "b"}},
      StrLen{"k"},
      GetRange{-1, 5, "k"},
      Size{},
      GrantLease{grant::LeaseId(0), lease::Duration(1), "", ""},
      RenewLeases{{grant::LeaseId(1)}},
      RevokeLease{grant::LeaseId(1)},
      AttachKey{grant::LeaseId(0), ""},
      ExpireKey{"k", TimeChange::set, KeyTime(0), TimeCondition::xx_lt, true, big, {1, KeyTime(2)}},
      ExpireKey{"", TimeChange::remove},
      ExpireKey{"k", TimeChange::add, grant::kLeaseTtlMax},
      DelEqual{big, {"a", ""}},
      SetSequential{"", ""},
      SetSequential{"prefix", big, grant::LeaseId(7)},
      WithNamedLease{"n", Set{"a", big, SetCondition::xx, true}},
      WithNamedLease{"n", SetSequential{"prefix", big}},
      WithNamedLease{"n", RevokeLease{}},
      WithNamedLease{"n", AttachKey{grant::LeaseId(0), ""}},
      RenewNamed{{{grant::LeaseId(0), "n"}, {grant::LeaseId(1), ""}, {grant::LeaseId(0), "m"}}},
      KeyLease{""},
      KeyLease{"k", big},
      LeaseInfo{grant::LeaseId(1), ""},
      LeaseList{grant::LeaseId(0), 1},
      ExpireLeases{raft::Term(1), {{grant::LeaseId(1), 1}, {grant::LeaseId(2), 2}}},
      SetUser{"ann", 7, "on ~a*"},
      SetUser{"b", 0, ""},
      DelUsers{{"ann", "b"}},
      CompareState{},
      ReportState{{raft::NodeId(1), raft::Index(2), 3, {4, 5}, {6, 7}}},
      Transaction{},
      Transaction{{{"a", 1}, {"", 0}}, {Set{"a", "b"}, Size{}, MGet{{"x"}}}},
  };
  expect_read_back(commands);
}

TEST(CommandCodec, DecodesFractionsCopiesAndBits) {
  expect_read_back({
      IncrByFloat{"k", "-1.5e3"},
      SetBit{kBitsMax - 1, true, "k"},
      GetBit{0xffffffff, "k"},
      BitCount{-1, 5, true, "k"},
      Lcs{LcsWanted::runs, true, 7, "a", ""},
      Copy{false, "from", ""},
      Copy{true, "from", "to", {7, grant::kLeaseTtlMax}},
  });
}

TEST(CommandCodec, OnlyWhatHasATimeHasAnEnd) {
  Set set{"k", "v"};
  set.end_ms = 5;
  EXPECT_EQ(encode_error(set), ErrorCode::invalid_argument);
  set.ttl = KeyTime(0);
  EXPECT_EQ(encode_error(set), ErrorCode::invalid_argument);
  set.ttl = grant::kLeaseTtlMin;
  expect_read_back({set});
  set.end_ms = -5;
  EXPECT_EQ(encode_error(set), ErrorCode::invalid_argument);
  MSet mset{MSetCondition::none, {{"k", "v"}}};
  mset.end_ms = 5;
  EXPECT_EQ(encode_error(mset), ErrorCode::invalid_argument);
  mset.ttl = grant::kLeaseTtlMin;
  expect_read_back({mset});
  ExpireKey expire{"k", TimeChange::add, grant::kLeaseTtlMin};
  expire.end_ms = 5;
  EXPECT_EQ(encode_error(expire), ErrorCode::invalid_argument) << "nobody knows it";
  expire.change = TimeChange::set;
  expect_read_back({expire});
  // An end that is none is said by the flag alone, and one without a time not at all.
  set.end_ms = 5;
  std::string bytes = encoded_text(set);
  bytes.replace(bytes.size() - 14, 8, std::string(8, '\0'));
  EXPECT_FALSE(decode_command(bytes));
  EXPECT_FALSE(decode_command(std::string("\1\7\10\0\0\0\1\0\0\0\1k\0\0\0\1v", 17)));
}

TEST(CommandCodec, DecodedPartsAreTheRightOnes) {
  const std::string bytes = encoded_text(Set{"key", "value", SetCondition::xx, true});
  const auto decoded = decode_command(bytes);
  ASSERT_TRUE(decoded);
  const Set& set = std::get<Set>(decoded.value());
  EXPECT_EQ(set.key, "key");
  EXPECT_EQ(set.value, "value");
  EXPECT_EQ(set.condition, SetCondition::xx);
  EXPECT_TRUE(set.get_old);
  const std::string incr = encoded_text(IncrBy{"n", -7});
  EXPECT_EQ(std::get<IncrBy>(decode_command(incr).value()).delta, -7);
  const std::string made = encoded_text(SetSequential{"p", "value", grant::LeaseId(7)});
  const auto sequential = std::get<SetSequential>(decode_command(made).value());
  EXPECT_EQ(sequential.prefix, "p");
  EXPECT_EQ(sequential.value, "value");
  EXPECT_EQ(sequential.lease, grant::LeaseId(7));
}

TEST(CommandCodec, EveryPrefixOfACommandIsRefusedOrAnotherCommand) {
  for (const std::string& bytes :
       {encoded_text(Set{"key", "value"}), encoded_text(Del{{"a", "bc"}}),
        encoded_text(IncrBy{"counter", 5})}) {
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      const std::string prefix = bytes.substr(0, length);
      const auto decoded = decode_command(prefix);
      if (decoded) {
        EXPECT_EQ(encoded_text(decoded.value()), prefix);
      } else {
        EXPECT_EQ(decoded.error().code, ErrorCode::malformed);
      }
    }
  }
}

TEST(CommandCodec, HostileBytesAreRefusedOrCanonical) {
  Random random(5);
  const std::vector<std::string> seeds = {
      encoded_text(Set{"key", "value", SetCondition::nx, true}),
      encoded_text(Del{{"a", "bc", "def"}}),
      encoded_text(IncrBy{"counter", 5}),
      encoded_text(MSet{MSetCondition::none_exists, {{"a", "b"}, {"c", ""}}}),
      encoded_text(Rename{true, "from", "to"}),
      encoded_text(SetRange{3, "key", "value"}),
      encoded_text(GetRange{0, 3, "key"}),
      encoded_text(ExpireSession{replica::SessionId(3), 4}),
      encoded_text(GrantLease{grant::LeaseId(7), std::chrono::seconds(1), "name", "holder"}),
      encoded_text(RenewLeases{{grant::LeaseId(7), grant::LeaseId(8)}}),
      encoded_text(ExpireLeases{raft::Term(2), {{grant::LeaseId(7), 8}}}),
      encoded_text(SetUser{"ann", 7, "on ~a*"}),
      encoded_text(DelUsers{{"ann", "b"}}),
      encoded_text(ReportState{{raft::NodeId(1), raft::Index(2), 3, {4, 5}, {6, 7}}}),
      encoded_text(
          ExpireKey{"key", TimeChange::set, grant::kLeaseTtlMin, TimeCondition::lt, true, "v"}),
      encoded_text(MSet{MSetCondition::all_equal, {{"a", "b"}}, grant::kLeaseTtlMin}),
      encoded_text(DelEqual{"v", {"a", "b"}}),
      encoded_text(IncrByFloat{"key", "10.25"}),
      encoded_text(SetBit{3, true, "key"}),
      encoded_text(Lcs{LcsWanted::length, true, 3, "key", "other"}),
      encoded_text(BitCount{0, 3, true, "key"}),
      encoded_text(Copy{true, "from", "to", {7, grant::kLeaseTtlMin}}),
      encoded_text(SetSequential{"prefix", "value", grant::LeaseId(7)}),
      encoded_text(WithNamedLease{"name", Set{"key", "value", SetCondition::nx, true}}),
      encoded_text(WithNamedLease{"name", AttachKey{grant::LeaseId(0), "key"}}),
      encoded_text(RenewNamed{{{grant::LeaseId(7), ""}, {grant::LeaseId(0), "name"}}}),
      encoded_text(Once{replica::SessionId(3), 4, 4, encoded_text(IncrBy{"counter", 5})}),
      encoded_text(LoadAtMost{5, encoded_text(Del{{"a", "bc"}})}),
      encoded_text(Transaction{{{"key", 2}}, {Set{"k", "v"}, Size{}, Del{{"a", "b"}}}})};
  std::size_t accepted = 0;
  for (int round = 0; round < 200000; ++round) {
    std::string bytes = seeds[random.below(seeds.size())];
    const std::uint64_t edits = random.below(4) + 1;
    for (std::uint64_t i = 0; i < edits && !bytes.empty(); ++i) {
      const std::size_t at = random.below(bytes.size());
      switch (random.below(3)) {
        case 0: bytes[at] = static_cast<char>(random.below(256)); break;
        case 1: bytes.erase(at, random.below(4)); break;
        default: bytes.insert(at, random.below(4), static_cast<char>(random.below(256)));
      }
    }
    const auto decoded = decode_command(bytes);
    if (!decoded) continue;
    ++accepted;
    ASSERT_EQ(encoded_text(decoded.value()), bytes);
  }
  EXPECT_GT(accepted, 100U);
}

TEST(CommandCodec, OnceCarriesNoCommandOfSessionsAndNoneOfANewerFormat) {
  const std::string carried = encoded_text(Set{"k", "v"});
  const std::string good = encoded_text(Once{replica::SessionId(1), 1, 1, carried});
  for (const Command& bad : std::vector<Command>{OpenSession{}, TouchSession{replica::SessionId(1)},
                                                 Once{replica::SessionId(1), 1, 1, carried}}) {
    const std::string inner = encoded_text(bad);
    EXPECT_EQ(encode_error(Once{replica::SessionId(1), 1, 1, inner}), ErrorCode::malformed);
    const std::string bytes = good.substr(0, good.size() - carried.size()) + inner;
    EXPECT_EQ(decode_command(bytes).error().code, ErrorCode::malformed);
  }
  EXPECT_EQ(encode_error(Once{replica::SessionId(1), 1, 1, ""}), ErrorCode::malformed);
  EXPECT_EQ(encode_error(Once{replica::SessionId(1), 1, 1, "\2\1"}), ErrorCode::unsupported_format);
}

TEST(CommandCodec, ACountBeyondTheBytesAllocatesNothing) {
  const std::string bytes("\x01\x02\x00\x00\xff\xff", 6);
  EXPECT_EQ(decode_command(bytes).error().code, ErrorCode::malformed);
}

TEST(CommandCodec, ANewerFormatNamesBothNumbers) {
  std::string bytes = encoded_text(Set{"k", "v"});
  bytes[0] = 2;
  const auto decoded = decode_command(bytes);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, ErrorCode::unsupported_format);
  EXPECT_EQ(decoded.error().message, "command format 2, this build knows 1: use a newer build");
  const auto reply = decode_reply(Bytes(std::string("\x03\x01")));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().message, "reply format 3, this build knows 1: use a newer build");
}

TEST(CommandLimits, HoldWhenEncoding) {
  const std::string key(kKeyBytesMax, 'k');
  const std::string value(kValueBytesMax, 'v');
  EXPECT_TRUE(encode_command(Set{key, value}));
  // The largest write fits into a session too.
  const std::string largest = encoded_text(Set{key, value});
  EXPECT_TRUE(decode_command(encoded_text(Once{replica::SessionId(1), 1, 1, largest})));
  EXPECT_EQ(encode_error(Set{key + "k", ""}), ErrorCode::invalid_argument);
  EXPECT_EQ(encode_error(Set{"", value + "v"}), ErrorCode::invalid_argument);
  EXPECT_EQ(encode_error(IncrBy{key + "k", 1}), ErrorCode::invalid_argument);
  EXPECT_EQ(encode_error(Del{{}}), ErrorCode::invalid_argument);
  EXPECT_EQ(encode_error(Del{{"a", key + "k"}}), ErrorCode::invalid_argument);
  EXPECT_TRUE(encode_command(Del{std::vector<std::string_view>(kCommandKeysMax, "k")}));
  EXPECT_EQ(encode_error(Del{std::vector<std::string_view>(kCommandKeysMax + 1, "k")}),
            ErrorCode::invalid_argument);
  EXPECT_EQ(encode_error(Del{std::vector<std::string_view>(300, key)}),
            ErrorCode::invalid_argument);  // more than a command's bytes
}

TEST(CommandLimits, TheLargestKeyMoves) {
  const std::string key(kKeyBytesMax, 'k');
  const std::string value(kValueBytesMax, 'v');
  MovedKey moved;
  moved.key = key;
  moved.exists = true;
  moved.value = value;
  moved.create_revision = 1;
  moved.mod_revision = std::uint64_t{1} << 62U;
  moved.version = std::numeric_limits<std::uint64_t>::max();
  moved.ttl = grant::kLeaseTtlMax;
  moved.token = grant::FencingToken(std::uint64_t{1} << 62U);
  const std::string bytes = encoded_text(ImportKeys{1, 2, {moved}});
  EXPECT_EQ(bytes.size(), key.size() + value.size() + 67);
  const auto decoded = decode_command(bytes);
  ASSERT_TRUE(decoded) << decoded.error().message;
  const MovedKey& found = std::get<ImportKeys>(decoded.value()).keys.at(0);
  EXPECT_EQ(found.key, key);
  EXPECT_EQ(found.value, value);
  EXPECT_EQ(found.ttl, moved.ttl);
  EXPECT_EQ(found.token, moved.token);

  MovedKey other;
  other.key = std::string_view(key).substr(1);
  other.token = moved.token;
  const std::size_t left = kImportBytesMax - bytes.size();
  EXPECT_EQ(encode_error(ImportKeys{1, 2, {other, moved}}), ErrorCode::invalid_argument);
  other.key = std::string_view(key).substr(0, left - 13);
  const std::string full = encoded_text(ImportKeys{1, 2, {other, moved}});
  EXPECT_EQ(full.size(), kImportBytesMax);
  EXPECT_TRUE(decode_command(full));
}

TEST(CommandLimits, NoOtherCommandIsLonger) {
  // All replicas have to agree on what is too long, those of earlier builds too.
  const std::string value(kValueBytesMax, 'v');
  const std::string key(kKeyBytesMax, 'k');
  const auto watching = [&](std::size_t bytes) {
    const std::string_view name(key);
    return Transaction{{{name.substr(0, bytes), 1}}, {Set{name.substr(0, 100), value}}};
  };
  const std::size_t rest = encoded_text(watching(0)).size() - value.size();
  const std::size_t most = kCommandBytesMax - value.size() - rest;
  EXPECT_EQ(encoded_text(watching(most)).size(), kCommandBytesMax);
  EXPECT_EQ(encode_error(watching(most + 1)), ErrorCode::invalid_argument);
}

TEST(CommandLimits, APrefixLeavesRoomForTheNumber) {
  const std::string key(kKeyBytesMax, 'k');
  const std::string_view longest = std::string_view(key).substr(kSequenceDigits);
  const std::string value(kValueBytesMax, 'v');
  std::string bytes = encoded_text(SetSequential{longest, value});
  EXPECT_TRUE(decode_command(bytes));
  EXPECT_TRUE(decode_command(encoded_text(Once{replica::SessionId(1), 1, 1, bytes})));
  EXPECT_EQ(encode_error(SetSequential{std::string_view(key).substr(kSequenceDigits - 1), ""}),
            ErrorCode::invalid_argument);
  EXPECT_EQ(encode_error(SetSequential{"", value + "v"}), ErrorCode::invalid_argument);
  // The same by hand: the value gives a byte to the prefix.
  const std::size_t length_end = 2 + 8 + 4;
  bytes[length_end - 1] = static_cast<char>(bytes[length_end - 1] + 1);
  EXPECT_EQ(decode_command(bytes).error().code, ErrorCode::invalid_argument);
}

TEST(CommandLimits, HoldWhenDecoding) {
  // A valid command whose last field, the key or the value, is stretched by hand.
  const std::string key(kKeyBytesMax, 'k');
  std::string incr = encoded_text(IncrBy{key, 1});
  EXPECT_TRUE(decode_command(incr));
  incr.push_back('k');
  EXPECT_EQ(decode_command(incr).error().code, ErrorCode::invalid_argument);
  std::string set = encoded_text(Set{"k", std::string(kValueBytesMax, 'v')});
  EXPECT_TRUE(decode_command(set));
  set.push_back('v');
  EXPECT_EQ(decode_command(set).error().code, ErrorCode::invalid_argument);
  const std::string huge(kCommandBytesMax + 1, '\1');
  EXPECT_EQ(decode_command(huge).error().code, ErrorCode::invalid_argument);
}

TEST(ReplyCodec, DecodesWhatWasEncoded) {
  const std::vector<Reply> replies = {Ok{},
                                      Nil{},
                                      Integer{std::numeric_limits<std::int64_t>::min()},
                                      ValueReply{},
                                      ValueReply{Bytes(std::string("some value"))},
                                      ErrorReply{ErrorKind::store_failed, "a reason"},
                                      ErrorReply{ErrorKind::malformed, ""},
                                      ErrorReply{ErrorKind::slot_left, "the last kind"},
                                      ArrayReply{},
                                      ArrayReply{{encode_reply(Ok{}), encode_reply(Nil{})}}};
  for (const Reply& reply : replies) {
    const Bytes bytes = encode_reply(reply);
    const auto decoded = decode_reply(bytes);
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded.value().index(), reply.index());
    EXPECT_EQ(encode_reply(decoded.value()), bytes);
  }
}

TEST(ReplyCodec, WrongLengthsKindsAndTypesAreMalformed) {
  for (const std::string_view bytes :
       {std::string_view("", 0), std::string_view("\1", 1), std::string_view("\1\0", 2),
        std::string_view("\1\6", 2), std::string_view("\1\7", 2), std::string_view("\1\1x", 3),
        std::string_view("\1\2x", 3), std::string_view("\1\3xxxxxxx", 9),
        std::string_view("\1\3xxxxxxxxx", 11), std::string_view("\1\5", 2),
        std::string_view("\1\5\0", 3), std::string_view("\1\5\26", 3)}) {
    const auto decoded = decode_reply(Bytes(bytes));
    ASSERT_FALSE(decoded) << hex(bytes);
    EXPECT_EQ(decoded.error().code, ErrorCode::malformed);
  }
}

}  // namespace
}  // namespace leasehold::kv
