// What a command line may say, and what is refused.
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/parser.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

/// A parser with three commands: `try` takes words, `run` a word and a command behind "--", `put`
/// two words that have places.
class ParserTest : public ::testing::Test {
 protected:
  int run(const Words& given) {
    seen_ = Seen();
    Parser parser("A program", "program 1", "Statuses", "./program");
    parser.add(Command{"try", "Tries", [this](Flags& flags) { return add_try(flags); }});
    parser.add(Command{"run", "Runs", [this](Flags& flags) { return add_run(flags); }});
    parser.add(Command{"put", "Puts", [this](Flags& flags) { return add_put(flags); }});
    parser.add(Tool{"tool", "Is elsewhere", "  --seed N  the seed\n", [](const Words& arguments) {
                      return 100 + static_cast<int>(arguments.size());
                    }});
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int status = parser.run(given);
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return status;
  }

  /// The output on stderr when the program refuses `given`.
  std::string refusal(const Words& given) {
    EXPECT_EQ(run(given), kUsage);
    EXPECT_FALSE(seen_.ran);
    return err_;
  }

  struct Seen {
    bool ran = false;
    Words servers, words, rest, keys;
    std::string name = "nobody";
    std::string key, value;
    std::string pause = "never";
    lease::Duration wait = 7s;
    std::chrono::milliseconds timeout{5000};
    bool json = false;
    bool plain = false;
  };
  Seen seen_;
  std::string out_, err_;

 private:
  cli::Run ran() {
    return [this] {
      seen_.ran = true;
      return 0;
    };
  }
  cli::Run add_try(Flags& flags) {
    flags.add_words(seen_.words, "ACTION ... [OPTIONS]");
    flags.add({"--name", "NAME", "A name", "nobody"}, seen_.name);
    flags.add({"--wait", "DURATION", "A duration", "7s"}, seen_.wait);
    flags.add({"--timeout", "DURATION", "Another"}, seen_.timeout);
    Flag key{"--key", "KEY", "One key more"};
    key.repeated = true;
    flags.add(key, [this](const std::string& text) -> Result<void> {
      seen_.keys.push_back(text);
      return {};
    });
    Flag pause{"--watch", "[DURATION]", "A pause"};
    pause.bare = "1s";
    flags.add(pause, seen_.pause);
    flags.add({"--json", "", "Objects"}, seen_.json);
    Flag plain{"--plain", "", "Lines"};
    plain.excludes = "--json";
    flags.add(plain, seen_.plain);
    flags.set_footer("\nBelow the flags");
    return ran();
  }
  cli::Run add_run(Flags& flags) {
    flags.add_words(seen_.words, "NAME [OPTIONS] -- COMMAND");
    flags.add_rest(seen_.rest);
    flags.add_servers(seen_.servers);
    return ran();
  }
  cli::Run add_put(Flags& flags) {
    Flag key{"key", "KEY", "The key"};
    Flag value{"value", "VALUE", "The value"};
    key.required = value.required = true;
    value.choices = {"-1", "one", "[1,2]"};
    flags.add(key, seen_.key);
    flags.add(value, seen_.value);
    return ran();
  }
};

TEST_F(ParserTest, FlagsStandAnywhereBetweenTheWords) {
  EXPECT_EQ(run({"try", "grant", "--name", "a=b", "--json", "name", "--wait=250ms"}), 0);
  EXPECT_THAT(seen_.words, ElementsAre("grant", "name"));
  EXPECT_EQ(seen_.name, "a=b");
  EXPECT_EQ(seen_.wait, 250ms);
  EXPECT_TRUE(seen_.json);
}

TEST_F(ParserTest, TheLastOneCountsUnlessEachDoes) {
  EXPECT_EQ(run({"try", "--wait", "1s", "--wait=2s", "--key", "a", "--key=b", "c"}), 0);
  EXPECT_EQ(seen_.wait, 2s);
  EXPECT_THAT(seen_.keys, ElementsAre("a", "b"));
  EXPECT_THAT(seen_.words, ElementsAre("c"));
  EXPECT_EQ(run({"run", "x", "--servers", "a:1,b:2", "--servers=c:3,", "--", "ls"}), 0);
  EXPECT_THAT(seen_.servers, ElementsAre("a:1", "b:2", "c:3"));
}

TEST_F(ParserTest, WhatWasNotGivenStaysAsItWas) {
  EXPECT_EQ(run({"try"}), 0);
  EXPECT_THAT(seen_.words, IsEmpty());
  EXPECT_EQ(seen_.name, "nobody");
  EXPECT_EQ(seen_.wait, 7s);
  EXPECT_EQ(seen_.timeout, 5s);
  EXPECT_FALSE(seen_.json);
}

TEST_F(ParserTest, NothingAfterTwoDashesIsAFlag) {
  EXPECT_EQ(run({"run", "--servers", "a:1", "name", "--", "ls", "--json", "--", "--help"}), 0);
  EXPECT_THAT(seen_.words, ElementsAre("name"));
  EXPECT_THAT(seen_.rest, ElementsAre("ls", "--json", "--", "--help"));
  EXPECT_EQ(run({"try", "attach", "--", "7", "--json"}), 0);
  EXPECT_THAT(seen_.words, ElementsAre("attach", "7", "--json"));
  EXPECT_FALSE(seen_.json);
  EXPECT_EQ(run({"put", "--", "--key", "-1"}), 0);
  EXPECT_EQ(seen_.key, "--key");
  EXPECT_EQ(seen_.value, "-1");
}

TEST_F(ParserTest, WordsAndValuesAreTakenAsTheyAre) {
  const Words odd = {"[a,b]", "{}", "", "try", "put", "a=b", "%%", "++"};
  for (const std::string& word : odd) {
    EXPECT_EQ(run({"try", "--key", word, "--name", word, "--", word}), 0) << word;
    EXPECT_THAT(seen_.keys, ElementsAre(word));
    EXPECT_EQ(seen_.name, word);
    EXPECT_THAT(seen_.words, ElementsAre(word));
    EXPECT_EQ(run({"run", "--servers", "a:1", "--", word}), 0) << word;
    EXPECT_THAT(seen_.rest, ElementsAre(word));
    if (word == "++") continue;  // CLI11 ends a command at it
    EXPECT_EQ(run({"try", word, "put"}), 0) << word;
    EXPECT_THAT(seen_.words, ElementsAre(word, "put"));
  }
  EXPECT_EQ(run({"put", "put", "[1,2]"}), 0);
  EXPECT_EQ(seen_.value, "[1,2]");
}

TEST_F(ParserTest, AValueMayBeEmptyOrLookLikeAFlag) {
  EXPECT_EQ(run({"try", "--name=", "word"}), 0);
  EXPECT_EQ(seen_.name, "");
  EXPECT_THAT(seen_.words, ElementsAre("word"));
  EXPECT_EQ(run({"try", "--name", "--json"}), 0);
  EXPECT_EQ(seen_.name, "--json");
  EXPECT_FALSE(seen_.json);
}

TEST_F(ParserTest, AFlagMayHaveAnImplicitValue) {
  EXPECT_EQ(run({"try", "--watch"}), 0);
  EXPECT_EQ(seen_.pause, "1s");
  EXPECT_EQ(run({"try", "--watch", "--json"}), 0);
  EXPECT_EQ(seen_.pause, "1s");
  EXPECT_TRUE(seen_.json);
  EXPECT_EQ(run({"try", "--watch", "2s"}), 0);
  EXPECT_EQ(seen_.pause, "2s");
}

TEST_F(ParserTest, ARefusalSaysWhatIsWrongAndWhereToLook) {
  EXPECT_EQ(
      refusal({"try", "--unknown", "x"}),
      "leasehold try: unknown option '--unknown'\nleasehold try --help shows what it takes.\n");
  EXPECT_THAT(refusal({"try", "-"}), HasSubstr("unknown option '-'"));
  EXPECT_THAT(refusal({"try", "--json=1"}), HasSubstr("--json"));
  EXPECT_THAT(refusal({"try", "name", "--wait"}), HasSubstr("--wait needs a value"));
  EXPECT_THAT(refusal({"run", "name", "--", "ls"}), HasSubstr("run: --servers is missing"));
  EXPECT_THAT(refusal({"run", "--servers", ",", "name"}), HasSubstr("--servers: name a node"));
  EXPECT_THAT(refusal({"put", "k"}), HasSubstr("value is missing"));
  EXPECT_THAT(refusal({"put", "k", "one", "x"}), HasSubstr("unexpected word 'x'"));
  EXPECT_THAT(refusal({"put", "k", "two"}), HasSubstr("'two' is none of: -1 one [1,2]"));
  EXPECT_THAT(refusal({"try", "--json", "--plain"}), HasSubstr(" excludes "));
}

TEST_F(ParserTest, DurationsSayWhichFlagIsWrong) {
  EXPECT_EQ(run({"try", "--timeout", "1500us"}), 0);
  EXPECT_EQ(seen_.timeout, 2ms) << "rounded up";
  for (const char* text : {"", "5", "-5s", "soon", "99999999999999m"}) {
    EXPECT_THAT(refusal({"try", std::string("--wait=") + text}), HasSubstr("--wait: ")) << text;
  }
}

TEST_F(ParserTest, HelpIsAskedForBeforeTheCommand) {
  EXPECT_EQ(run({"try", "name", "--help"}), 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("Usage: leasehold try ACTION ... [OPTIONS]\n"),
                          HasSubstr("--wait DURATION=7s"), HasSubstr("Below the flags")));
  EXPECT_FALSE(seen_.ran);
  EXPECT_EQ(run({"try", "-h"}), 0);
  EXPECT_THAT(out_, HasSubstr("Usage: leasehold try"));
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("A program"), HasSubstr("  try "), HasSubstr("  tool "),
                          HasSubstr("Statuses")));
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_EQ(out_, "program 1\n");
}

TEST_F(ParserTest, AnUnknownCommandIsRefused) {
  EXPECT_THAT(refusal({"tyr"}), HasSubstr("leasehold: 'tyr' is not a command; did you mean try?"));
  EXPECT_THAT(refusal({}), HasSubstr("the command is missing"));
  EXPECT_THAT(refusal({"--json", "try"}), HasSubstr("unknown option '--json'"));
}

TEST_F(ParserTest, AToolGetsItsArgumentsAsTheyAre) {
  EXPECT_EQ(run({"tool", "--help", "--", "--seed"}), 103);
  EXPECT_THAT(out_ + err_, IsEmpty());
}

TEST_F(ParserTest, TheManualKnowsWhatHelpKnows) {
  Parser parser("A program", "program 1", "", "./program");
  parser.add(Command{"put", "Puts", [](Flags& flags) {
                       static std::string key;
                       Flag flag{"key", "KEY", "The key", "k"};
                       flag.required = true;
                       flag.choices = {"k", "l"};
                       flags.add(flag, key);
                       static Words words;
                       flags.add_words(words, "KEY");
                       flags.set_footer("Example");
                       return [] { return 0; };
                     }});
  parser.add(Tool{"tool", "Is elsewhere", "usage\n  --seed N  the seed\n", nullptr});
  const auto helps = parser.helps();
  ASSERT_EQ(helps.size(), 2U);
  EXPECT_EQ(helps[0].about, "Puts");
  EXPECT_EQ(helps[0].text, "Usage: leasehold put KEY\n\nExample");
  ASSERT_EQ(helps[0].flags.size(), 1U);
  EXPECT_EQ(helps[0].flags[0].name, "key");
  EXPECT_EQ(helps[0].flags[0].default_text, "k");
  EXPECT_TRUE(helps[0].flags[0].required);
  EXPECT_THAT(helps[0].flags[0].choices, ElementsAre("k", "l"));
  ASSERT_EQ(helps[1].flags.size(), 1U);
  EXPECT_EQ(helps[1].flags[0].name, "--seed");
}

}  // namespace
}  // namespace leasehold::cli
