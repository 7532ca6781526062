// The manual page and the shell completions, made of what --help knows, so that they cannot differ
// from it.
#pragma once

#include <leasehold/base/result.h>

#include <string>
#include <string_view>
#include <vector>

namespace leasehold::cli {

struct FlagHelp {
  std::string name;   ///< "--servers"; a positional argument has a name without dashes
  std::string value;  ///< "HOST:PORT,..."; empty for a flag without a value
  std::string help;
  std::string default_text;
  std::vector<std::string> choices;  ///< the only values that it takes; empty: any
  bool required = false;

  bool positional() const { return name.rfind("--", 0) != 0; }
};

struct CommandHelp {
  std::string name;
  std::string about;
  std::vector<FlagHelp> flags;
  std::string text;  ///< examples, or the whole usage of a command with a parser of its own
};

/// The flags that a usage text lists, each on a line of its own: "  --seed N   what it does".
std::vector<FlagHelp> flags_of_usage(std::string_view usage);

/// What the exit statuses mean, for --help and for the manual.
extern const char* const kExitStatuses;

/// roff, section 1.
std::string man_page(const std::vector<CommandHelp>& commands, std::string_view version);

/// The script for "bash", "zsh" or "fish". Errors: invalid_argument.
Result<std::string> completion_script(const std::vector<CommandHelp>& commands,
                                      std::string_view shell);

}  // namespace leasehold::cli
