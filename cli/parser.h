// The one parser of the program: the command lines that it accepts, and their --help. It uses
// CLI11, which only parser.cc includes.
//
// A command is a function that registers flags at a Flags and returns the function to run after
// they have been read (commands.h). A tool is a command of another room, which reads its flags
// itself: there it is also a program of its own, without CLI11.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/cli/manual.h>
#include <leasehold/client/access.h>
#include <leasehold/lease/instant.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
class Option;
}  // namespace CLI

namespace leasehold::cli {

/// What a command does. Returns the exit status.
using Run = std::function<int()>;

struct Flag {
  const char* name;       ///< "--ttl"; without dashes: a word at its place
  const char* type = "";  ///< of its value, for people: "DURATION"
  const char* help = "";
  const char* default_text = "";  ///< for people
  bool required = false;
  bool repeated = false;                  ///< each time counts, not only the last one
  std::vector<std::string> choices = {};  ///< the only values that it takes; empty: any
  const char* bare = nullptr;      ///< the value if it is given without one; null: it needs one
  const char* excludes = nullptr;  ///< a flag that was added before
};

/// The flags of one command. The variables that are bound here are written when the command line is
/// read.
class Flags {
 public:
  /// Takes a value. Errors: what is wrong with it; the name of the flag is put before that.
  using Take = std::function<Result<void>(const std::string& value)>;

  /// `program`: how the program was called.
  Flags(CLI::App& command, std::string program) : command_(command), program_(std::move(program)) {}

  void add(const Flag& flag, bool& given);
  void add(const Flag& flag, std::string& text);
  void add(const Flag& flag, Take take);
  /// "1s" and the like.
  void add(const Flag& flag, lease::Duration& duration);
  /// The same, rounded up.
  void add(const Flag& flag, std::chrono::milliseconds& duration);
  /// --servers, which is `required` or not, and the flags of cli/login.h and of TLS for access().
  void add_servers(std::vector<std::string>& servers, bool required = true);

  /// Words between the flags, and all behind "--". `usage` follows the name of the command.
  void add_words(std::vector<std::string>& words, const char* usage);
  /// Only the words after the first "--", unchanged.
  void add_rest(std::vector<std::string>& rest) { rest_ = &rest; }
  /// What --help says below the flags; may begin with an empty line.
  void set_footer(const std::string& text);

  const std::string& program() const { return program_; }

 private:
  friend class Parser;

  CLI::Option* add_option(const Flag& flag, Take take);
  /// Splits `given`, which begins with the command, for CLI11.
  std::vector<std::string> begin(const std::vector<std::string>& given);
  /// Hands out the words. The text of an error, or empty.
  std::string finish();
  CommandHelp help() const;

  CLI::App& command_;
  const std::string program_;
  std::map<const CLI::Option*, std::vector<std::string>> choices_;
  std::string usage_;  ///< empty: CLI11 makes it
  std::vector<std::string>* words_ = nullptr;
  std::vector<std::string>* rest_ = nullptr;
  std::vector<std::string> behind_dashes_;
  client::Access::Files files_;  ///< of a command that talks to servers
  bool to_servers_ = false;
  bool places_ = false;  ///< there are words with a place
};

struct Command {
  const char* name;
  const char* about;
  std::function<Run(Flags& flags)> add;
};

struct Tool {
  const char* name;
  const char* about;
  std::string usage;  ///< a flag a line (flags_of_usage())
  int (*run)(const std::vector<std::string>& arguments);
};

class Parser {
 public:
  /// `program`: how it was called.
  Parser(const char* about, const std::string& version, const std::string& footer,
         const char* program);
  ~Parser();
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  /// --help lists commands and tools in the order in which they were added.
  void add(const Command& command);
  void add(const Tool& tool);

  /// `given`: without the program. Runs what it asks for, or says on stderr what is wrong with it.
  /// Returns the exit status.
  int run(const std::vector<std::string>& given);

  /// The help of every command.
  std::vector<CommandHelp> helps() const;

 private:
  struct Entry;
  int run_command(Entry& entry, const std::vector<std::string>& given);
  int run_without_command(std::vector<std::string> given);
  int refuse_command(const std::string& word) const;

  std::unique_ptr<CLI::App> app_;
  const std::string program_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

/// The number of a node, as serve --id takes it. Errors: invalid_argument.
Result<std::uint64_t> parse_node_number(const std::string& text);

/// Says on stderr what is wrong with the flags of `command`. Returns kUsage.
int misused(const std::string& command, const std::string& problem);

}  // namespace leasehold::cli
