// Rules of users: as text, one by one, and what they permit. Passwords of the real kind have a test
// of their own; the others are cheap.
#include <leasehold/server/commands/command_table.h>
#include <leasehold/server/users/accounts.h>
#include <leasehold/server/users/password.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace leasehold::server {
namespace {

class CheapPasswords final : public PasswordWork {
 public:
  std::string digest(std::string_view password) override { return sha256_hex(password); }
  std::string hash(std::string_view digest) override {
    return "scrypt$14$8$1$" + std::string(32, '0') + "$" + std::string(digest);
  }
  bool matches(std::string_view stored, std::string_view digest) override {
    return stored.substr(stored.size() - 64) == digest;
  }
};

/// The rules after these, or the first problem.
std::string after(UserRules& rules, const std::vector<std::string>& words) {
  CheapPasswords work;
  for (const std::string& word : words) {
    const UserRules before = rules;
    const std::string problem = apply_rule(rules, word, command_table(), work);
    if (problem.empty()) continue;
    EXPECT_EQ(rules, before) << "a rule that is refused changes nothing";
    return word + ": " + problem;
  }
  UserRules again;
  EXPECT_TRUE(parse_rules(rules.text(), again));
  EXPECT_EQ(again.text(), rules.text());
  return rules.text();
}
std::string after(const std::vector<std::string>& words) {
  UserRules rules;
  return after(rules, words);
}

Rights rights(const std::vector<std::string>& words) {
  UserRules rules;
  after(rules, words);
  return {"ann", rules, 1, 1, command_table()};
}

bool runs(const Rights& rights, std::string_view command) {
  return rights.may_run(command_table().number_of(*find_command_named(command)));
}

// Each as the one thing that a command asks for.
bool may_use(const Rights& rights, std::string_view key, KeyAccess access) {
  std::size_t budget = right_steps_max(1);
  return rights.may_use(key, access, budget);
}
bool may_use_prefix(const Rights& rights, std::string_view prefix, KeyAccess access) {
  std::size_t budget = right_steps_max(1);
  return rights.may_use_prefix(prefix, access, budget);
}
bool may_listen(const Rights& rights, std::string_view channel) {
  std::size_t budget = right_steps_max(1);
  return rights.may_listen(channel, budget);
}
bool may_listen_to_pattern(const Rights& rights, std::string_view pattern) {
  std::size_t budget = right_steps_max(1);
  return rights.may_listen_to_pattern(pattern, budget);
}

TEST(UserRules, ANewUserMayDoNothing) {
  EXPECT_EQ(after({}), "off resetchannels -@all");
  EXPECT_EQ(open_rules().text(), "on nopass ~* &* +@all");
  EXPECT_TRUE(Rights("default", open_rules(), 0, 0, command_table()).unrestricted());
  const Rights none = rights({"on"});
  EXPECT_FALSE(none.unrestricted());
  EXPECT_FALSE(runs(none, "get"));
  EXPECT_FALSE(may_use(none, "", kReads));
  EXPECT_FALSE(may_listen(none, "c"));
}

TEST(UserRules, AreThoseOfRedis) {
  EXPECT_EQ(after({"on", "~a:*", "%R~b", "%w~c", "%rw~d", "&ch*", "+@read", "-get", "+config|get"}),
            "on ~a:* %R~b %W~c ~d resetchannels &ch* -@all +@read -get +config|get");
  EXPECT_EQ(after({"allkeys", "allchannels", "allcommands", "nocommands"}), "off ~* &* -@all");
  EXPECT_EQ(after({"ON", "~a", "resetkeys", "&b", "resetchannels", "+GET", "off"}),
            "off resetchannels -@all +get");
  EXPECT_EQ(after({"on", "nopass", "~a", "+get", "reset"}), "off resetchannels -@all");
  EXPECT_EQ(after({"%R~a", "%W~a"}), "off ~a resetchannels -@all") << "both make all";
  EXPECT_EQ(after({"~a", "~*", "~*"}), "off ~* resetchannels -@all");
}

TEST(UserRules, TheLaterRuleOfACommandDecides) {
  EXPECT_EQ(after({"+get", "-get", "+get"}), "off resetchannels -@all +get");
  EXPECT_EQ(after({"+get", "-@all", "+set"}), "off resetchannels -@all +set");
  const Rights some = rights({"+@all", "-@dangerous", "+keys", "-client", "+client|id"});
  EXPECT_TRUE(runs(some, "keys"));
  EXPECT_FALSE(runs(some, "client|info"));
  EXPECT_TRUE(runs(some, "client|id"));
  EXPECT_FALSE(runs(some, "leasehold|member"));
}

TEST(UserRules, OfAllKeysToReadAndAllToWriteAreThoseOfAllKeys) {
  EXPECT_EQ(after({"%R~*", "~a", "%W~*"}), "off ~* resetchannels -@all");
  EXPECT_EQ(after({"%W~*", "%R~a", "%R~*"}), "off ~* resetchannels -@all");
  EXPECT_EQ(after({"%R~*", "%W~a"}), "off %R~* %W~a resetchannels -@all");
}

// What is stored is read again by parse_rules(), at every member.
TEST(UserRules, OfKeysAreReadAgainInWhateverOrderTheyCome) {
  const std::vector<std::string> all = {"~a", "%R~a", "%W~a", "%R~*", "%W~*", "%RW~*", "allkeys"};
  for (const std::string& first : all) {
    for (const std::string& second : all) {
      for (const std::string& third : all) static_cast<void>(after({first, second, third}));
    }
  }
}

TEST(UserRules, ThatAreWrongSayWhy) {
  EXPECT_EQ(after({"+nothing"}), "+nothing: Unknown command or category name in ACL");
  EXPECT_EQ(after({"+@nothing"}), "+@nothing: Unknown command or category name in ACL");
  EXPECT_EQ(after({"+"}), "+: Unknown command or category name in ACL");
  EXPECT_EQ(after({"what"}), "what: Syntax error");
  EXPECT_EQ(after({""}), ": Syntax error");
  EXPECT_EQ(after({"%~a"}), "%~a: Syntax error");
  EXPECT_EQ(after({"%RR~a"}), "%RR~a: Syntax error");
  EXPECT_EQ(after({"%R"}), "%R: Syntax error");
  EXPECT_EQ(after({"~a b"}), "~a b: Syntax error");
  EXPECT_EQ(after({"&a\tb"}), "&a\tb: Syntax error");
  EXPECT_THAT(after({"allkeys", "~a"}), ::testing::HasSubstr("Try 'resetkeys'"));
  EXPECT_THAT(after({"allchannels", "&a"}), ::testing::HasSubstr("Try 'resetchannels'"));
  EXPECT_THAT(after({"#1234"}), ::testing::HasSubstr("exactly 64 characters"));
  EXPECT_THAT(after({"<none"}), ::testing::HasSubstr("does not exist"));
  EXPECT_THAT(after({"!" + std::string(64, 'a')}), ::testing::HasSubstr("does not exist"));
  EXPECT_EQ(shown_rule(">secret"), ">(password)");
  EXPECT_EQ(shown_rule("~key"), "~key");
}

TEST(UserRules, PasswordsAreAddedAndRemoved) {
  UserRules rules;
  after(rules, {"nopass", ">one", ">one", ">two", "#" + sha256_hex("three")});
  EXPECT_FALSE(rules.nopass);
  EXPECT_EQ(rules.passwords.size(), 3U);
  after(rules, {"<one", "!" + sha256_hex("two")});
  EXPECT_EQ(rules.passwords.size(), 1U);
  const std::string stored = rules.passwords[0];
  after(rules, {"!" + stored});
  EXPECT_TRUE(rules.passwords.empty());
  after(rules, {"#" + stored});
  EXPECT_EQ(rules.passwords, std::vector<std::string>{stored}) << "a stored form goes back in";
  after(rules, {"resetpass"});
  for (std::size_t i = 0; i < kPasswordsMax; ++i) after(rules, {">" + std::to_string(i)});
  EXPECT_THAT(after(rules, {">more"}), ::testing::HasSubstr("at most 8 passwords"));
}

TEST(UserRules, ThatANewerBuildWroteAreNotGuessed) {
  UserRules rules;
  EXPECT_TRUE(parse_rules("on nopass ~* &* -@all +newcommand +@newcategory +get", rules));
  EXPECT_EQ(rules.text(), "on nopass ~* &* -@all +newcommand +@newcategory +get");
  const Rights known("ann", rules, 1, 1, command_table());
  EXPECT_TRUE(runs(known, "get"));
  EXPECT_FALSE(parse_rules("on nopass (~a +get)", rules));
  EXPECT_FALSE(parse_rules("on  nopass", rules));
  EXPECT_FALSE(parse_rules("on #argon2$x", rules));
  EXPECT_FALSE(Rights("ann", open_rules(), 1, 1, command_table(), false).on());
}

TEST(UserRights, OnePatternPermitsAllThatAKeyIsUsedFor) {
  const Rights some = rights({"on", "%R~r:*", "%W~w:*", "~[ab]?", "%R~both", "%W~bot?"});
  EXPECT_TRUE(may_use(some, "r:1", kReads));
  EXPECT_FALSE(may_use(some, "r:1", kWrites));
  EXPECT_FALSE(may_use(some, "w:1", kReadsAndWrites));
  EXPECT_TRUE(may_use(some, "ax", kReadsAndWrites));
  EXPECT_FALSE(may_use(some, "cx", kReads));
  EXPECT_FALSE(may_use(some, "both", kReadsAndWrites)) << "as in Redis: no two patterns together";
}

TEST(UserRights, APatternThatCostsTooMuchPermitsNothing) {
  const Rights some = rights({"on", "~*a*a*a*b"});
  EXPECT_TRUE(may_use(some, "aaaab", kReads));
  EXPECT_FALSE(may_use(some, std::string(60000, 'a'), kReads));
  const Rights dear = rights({"on", "~*" + std::string(400, 'a') + "b"});
  EXPECT_FALSE(may_use(dear, std::string(60000, 'a') + "b", kReads));
}

TEST(UserRights, AllThatOneCommandAsksForSharesItsSteps) {
  std::vector<std::string> words = {"on"};
  for (int i = 0; i < 30; ++i) words.push_back("~app" + std::to_string(i) + ":*");
  const Rights some = rights(words);
  // As much as a command may have of ordinary keys.
  constexpr std::size_t kKeys = 65535;
  std::size_t budget = right_steps_max(kKeys);
  for (std::size_t i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(some.may_use("app29:" + std::to_string(i), kReads, budget)) << i;
  }
  // Each of these would have enough alone.
  const Rights dear = rights({"on", "~*aaaaaaaaab", "~x"});
  const std::string key(60000, 'a');
  budget = right_steps_max(3);
  EXPECT_FALSE(dear.may_use(key, kReads, budget));
  EXPECT_GT(budget, 0U);
  EXPECT_FALSE(dear.may_use(key, kReads, budget));
  EXPECT_EQ(budget, 0U);
  EXPECT_FALSE(dear.may_use("x", kReads, budget)) << "nothing is permitted then";
}

TEST(UserRights, PrefixesAndPatternsOfChannelsHaveTheirSteps) {
  std::vector<std::string> words = {"on"};
  for (int i = 0; i < 300; ++i) words.push_back("~" + std::string(60, 'a') + std::to_string(i));
  for (int i = 0; i < 300; ++i) words.push_back("&" + std::string(60, 'a') + std::to_string(i));
  const Rights some = rights(words);
  std::size_t budget = 1000;
  EXPECT_FALSE(some.may_use_prefix("a", kReads, budget));
  EXPECT_EQ(budget, 700U);
  EXPECT_FALSE(some.may_listen_to_pattern("a", budget));
  EXPECT_EQ(budget, 400U);
  EXPECT_FALSE(some.may_use_prefix("a", kReads, budget));
  EXPECT_FALSE(some.may_listen_to_pattern("a", budget));
  EXPECT_EQ(budget, 0U);
}

TEST(UserRules, PatternsThatCostTooMuchAreRefused) {
  UserRules rules;
  after(rules, {"on", "~" + std::string(30000, 'a'), "&*" + std::string(17000, 'a')});
  EXPECT_THAT(after(rules, {"~" + std::string(2000, 'b')}), ::testing::HasSubstr("use fewer"));
  EXPECT_THAT(after(rules, {"%R~" + std::string(2000, 'b')}), ::testing::HasSubstr("use fewer"));
  EXPECT_THAT(after(rules, {"&" + std::string(2000, 'b')}), ::testing::HasSubstr("use fewer"));
  after(rules, {"resetkeys", "~" + std::string(2000, 'b')});
  EXPECT_EQ(rules.keys.size(), 1U);
  EXPECT_THAT(after({"~" + std::string(300, '*')}), ::testing::HasSubstr("its stars"));
  // One that an earlier build took is still read.
  EXPECT_TRUE(parse_rules("on nopass ~" + std::string(300, '*') + " resetchannels -@all", rules));
}

TEST(UserRights, APrefixNeedsAPatternThatCoversIt) {
  const Rights some = rights({"on", "%R~jobs:*", "~a?*", "~exact"});
  EXPECT_TRUE(may_use_prefix(some, "jobs:", kReads));
  EXPECT_TRUE(may_use_prefix(some, "jobs:1", kReads));
  EXPECT_FALSE(may_use_prefix(some, "jobs:", kWrites));
  EXPECT_FALSE(may_use_prefix(some, "job", kReads));
  EXPECT_FALSE(may_use_prefix(some, "", kReads));
  EXPECT_FALSE(may_use_prefix(some, "ab", kReads));
  EXPECT_FALSE(may_use_prefix(some, "exact", kReads));
  EXPECT_TRUE(may_use_prefix(rights({"on", "~*"}), "", kReadsAndWrites));
}

TEST(UserRights, APatternOfChannelsHasToBeTheUsers) {
  const Rights some = rights({"on", "&news:*", "&one"});
  EXPECT_TRUE(may_listen(some, "news:1"));
  EXPECT_FALSE(may_listen(some, "other"));
  EXPECT_TRUE(may_listen_to_pattern(some, "news:*"));
  EXPECT_FALSE(may_listen_to_pattern(some, "news:1*"));
  EXPECT_FALSE(may_listen_to_pattern(some, "*"));
}

TEST(UserRights, OnlyAUserWithAllOfItIsUnrestricted) {
  const std::vector<std::string> all = {"on", "nopass", "~*", "&*", "+@all"};
  EXPECT_TRUE(rights(all).unrestricted());
  for (const std::string less : {"off", "resetkeys", "resetchannels", "-get", "-@cluster-admin",
                                 "-acl|whoami", "-@lease-others"}) {
    std::vector<std::string> words = all;
    words.push_back(less);
    EXPECT_FALSE(rights(words).unrestricted()) << less;
  }
}

TEST(Categories, EveryCommandHasSome) {
  const CommandCatalogue& all = command_table();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Categories has = all.categories_of(i);
    EXPECT_NE(has, 0U) << all.name_of(i);
    const bool fast = (has & category::fast) != 0;
    EXPECT_NE(fast, (has & category::slow) != 0) << all.name_of(i) << " is fast or slow";
  }
}

TEST(Categories, WhatOperatorsNeedIsACategory) {
  std::vector<std::string> names;
  const CommandCatalogue& all = command_table();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if ((all.categories_of(i) & category::cluster_admin) != 0) names.emplace_back(all.name_of(i));
  }
  EXPECT_THAT(
      names, ::testing::ElementsAre(
                 "acl|deluser", "acl|dryrun", "acl|getuser", "acl|list", "acl|log", "acl|setuser",
                 "acl|users", "client|kill", "client|list", "config|get", "config|set",
                 "leasehold|backup", "leasehold|host", "leasehold|member", "leasehold|pool",
                 "leasehold|readbackup", "leasehold|reload", "leasehold|settings",
                 "leasehold|slots", "leasehold|snapshot", "leasehold|trace", "leasehold|transfer"));
}

TEST(Categories, CommandsOnKeysReadOrWrite) {
  const CommandTable& all = command_table();
  for (const CommandSpec* spec = commands_begin(); spec != commands_end(); ++spec) {
    if (spec->make == nullptr) continue;
    const Categories has = all.categories_of(all.number_of(*spec));
    const bool reads = (has & category::read) != 0;
    EXPECT_NE(reads, (has & category::write) != 0) << spec->name;
  }
}

TEST(Passwords, AreStoredWithASaltAndFoundAgain) {
  const std::string digest = sha256_hex("secret");
  EXPECT_EQ(digest, "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b");
  const std::string stored = hash_password(digest);
  EXPECT_TRUE(is_password_hash(stored)) << stored;
  EXPECT_NE(stored, hash_password(digest));
  EXPECT_TRUE(password_matches(stored, digest));
  EXPECT_FALSE(password_matches(stored, sha256_hex("Secret")));
  EXPECT_EQ(stored.find(digest), std::string::npos);
}

/// So that a record of today is read by every later build.
TEST(Passwords, TheStoredFormIsPinned) {
  const std::string salt = "000102030405060708090a0b0c0d0e0f";
  const std::string stored =
      "scrypt$14$8$1$" + salt + "$882e52a0509cd85b809ef25a362ea1717e16f10791761b61c55ec669a1dfddf7";
  EXPECT_TRUE(password_matches(stored, sha256_hex("secret")));
}

TEST(Passwords, AStoredFormWithOtherCostsIsRefused) {
  const std::string stored = hash_password(sha256_hex("x"));
  EXPECT_FALSE(is_password_hash("scrypt$30" + stored.substr(9)));
  EXPECT_FALSE(is_password_hash(stored + "0"));
  EXPECT_FALSE(is_password_hash(stored.substr(1)));
  EXPECT_FALSE(is_password_hash(""));
  EXPECT_FALSE(password_matches("", sha256_hex("x")));
}

TEST(Accounts, AKnownPasswordIsForgottenWhenTheUserChanges) {
  Accounts accounts(command_table());
  kv::Users users;
  UserRules rules;
  rules.on = true;
  rules.passwords.push_back(hash_password(sha256_hex("secret")));
  users.set("ann", {1, 1, rules.text()});
  const auto first = accounts.find(users, "ann");
  EXPECT_FALSE(accounts.knows(*first, sha256_hex("secret")));
  EXPECT_FALSE(accounts.check(first, sha256_hex("wrong")));
  EXPECT_FALSE(accounts.knows(*first, sha256_hex("wrong")));
  EXPECT_TRUE(accounts.check(first, sha256_hex("secret")));
  EXPECT_TRUE(accounts.knows(*first, sha256_hex("secret")));
  users.set("ann", {2, 1, rules.text()});
  EXPECT_FALSE(accounts.knows(*accounts.find(users, "ann"), sha256_hex("secret")));
  EXPECT_FALSE(accounts.check(nullptr, sha256_hex("secret")));
}

TEST(Accounts, RightsOfAUserThatDidNotChangeStay) {
  Accounts accounts(command_table());
  kv::Users users;
  users.set("ann", {1, 1, "on"});
  const auto ann = accounts.find(users, "ann");
  const auto other = accounts.find(users, kDefaultUser);
  users.set("bob", {2, 2, "what is this"});
  EXPECT_EQ(accounts.find(users, "ann"), ann);
  EXPECT_EQ(accounts.find(users, kDefaultUser), other);
  EXPECT_FALSE(accounts.find(users, "bob")->on());
  EXPECT_EQ(accounts.find(users, "nobody"), nullptr);
}

TEST(AclLogTest, AlikeEntriesAreOneAndTheNumberIsBounded) {
  AclLog log;
  using std::chrono::seconds;
  log.add({AclReason::key, "toplevel", "k", "ann", "id=1"}, seconds(100));
  log.add({AclReason::key, "toplevel", "other", "ann", "id=1"}, seconds(101));
  log.add({AclReason::key, "toplevel", "k", "ann", "id=2"}, seconds(102));
  const auto entries = log.newest(10);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].object, "k");
  EXPECT_EQ(entries[0].count, 2U);
  EXPECT_EQ(entries[0].client, "id=2");
  log.add({AclReason::key, "toplevel", "k", "ann", "id=1"}, seconds(200));
  EXPECT_EQ(log.newest(10).size(), 3U);
  EXPECT_EQ(log.refused(AclReason::key), 4U);
  for (int i = 0; i < 1000; ++i) {
    log.add({AclReason::auth, "toplevel", "auth", std::to_string(i), ""}, seconds(300));
  }
  EXPECT_EQ(log.newest(5000).size(), kAclLogEntriesMax);
}

}  // namespace
}  // namespace leasehold::server
