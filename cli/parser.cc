#include <leasehold/cli/access.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/leader.h>
#include <leasehold/cli/login.h>
#include <leasehold/cli/nearest_word.h>
#include <leasehold/cli/parser.h>
#include <leasehold/server/front/duration.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <limits>
#include <optional>

namespace leasehold::cli {
namespace {

/// One of a few words, and an error that names them.
CLI::Validator one_of(const std::vector<std::string>& words) {
  return CLI::Validator(
      [words](std::string& given) -> std::string {
        if (std::find(words.begin(), words.end(), given) != words.end()) return "";
        std::string text = fmt::format("'{}' is none of:", given);
        for (const std::string& word : words) text += " " + word;
        return text;
      },
      "");
}

/// Uses a command's own usage line, if it has one.
class HelpText final : public CLI::Formatter {
 public:
  explicit HelpText(const std::string& usage) : usage_(usage) {}
  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (usage_.empty()) return CLI::Formatter::make_usage(app, std::move(name));
    return fmt::format("Usage: {} {}\n", name, usage_);
  }

 private:
  const std::string& usage_;
};

bool begins_with_dash(const std::string& word) {
  return word.rfind('-', 0) == 0;
}

/// The error in the style of the other messages.
std::string text_of(const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::string required = " is required";
  if (error.get_name() == "RequiredError" && text.size() > required.size()) {
    return text.substr(0, text.size() - required.size()) + " is missing";
  }
  if (error.get_name() == "ArgumentMismatch") {
    const std::size_t colon = text.find(':');
    if (colon != std::string::npos) return text.substr(0, colon) + " needs a value";
    return fmt::format("--{} takes no value", text.substr(0, text.find(' ')));
  }
  return text;
}

}  // namespace

Result<std::uint64_t> parse_node_number(const std::string& text) {
  const auto id = server::parse_integer(text);
  if (id && *id >= 1 && *id <= std::numeric_limits<std::uint32_t>::max()) {
    return static_cast<std::uint64_t>(*id);
  }
  return Error{ErrorCode::invalid_argument, fmt::format("'{}' is not the number of a node", text)};
}

int misused(const std::string& command, const std::string& problem) {
  std::cerr << "leasehold " << command << ": " << problem << "\nleasehold " << command
            << " --help shows what it takes.\n";
  return kUsage;
}

// Flags

CLI::Option* Flags::add_option(const Flag& flag, Take take) {
  CLI::Option* const option = command_.add_option_function<std::string>(
      flag.name,
      [name = std::string(flag.name), take = std::move(take)](const std::string& value) {
        if (const auto taken = take(value); !taken) {
          throw CLI::ValidationError(name, taken.error().message);
        }
      },
      flag.help);
  option->type_name(flag.type)->required(flag.required);
  if (*flag.default_text != '\0') option->default_str(flag.default_text);
  if (!begins_with_dash(flag.name)) places_ = true;
  return option;
}

void Flags::add(const Flag& flag, Take take) {
  if (flag.bare != nullptr) {
    take = [bare = std::string(flag.bare), take = std::move(take)](const std::string& value) {
      // CLI11's words for none.
      return take(value.empty() || value == "true" ? bare : value);
    };
  }
  CLI::Option* const option = add_option(flag, std::move(take));
  if (flag.repeated) {
    option->trigger_on_parse();
  } else {
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  if (flag.bare != nullptr) option->expected(0, 1);
  if (flag.excludes != nullptr) option->excludes(command_.get_option(flag.excludes));
  if (flag.choices.empty()) return;
  option->check(one_of(flag.choices));
  choices_[option] = flag.choices;
}

void Flags::add(const Flag& flag, bool& given) {
  CLI::Option* const option = command_.add_flag(flag.name, given, flag.help);
  option->disable_flag_override();
  if (flag.excludes != nullptr) option->excludes(command_.get_option(flag.excludes));
}

void Flags::add(const Flag& flag, std::string& text) {
  add(flag, [&text](const std::string& value) -> Result<void> {
    text = value;
    return {};
  });
}

void Flags::add(const Flag& flag, lease::Duration& duration) {
  add(flag, [&duration](const std::string& value) -> Result<void> {
    const auto parsed = server::parse_duration(value);
    if (!parsed) return parsed.error();
    duration = parsed.value();
    return {};
  });
}

void Flags::add(const Flag& flag, std::chrono::milliseconds& duration) {
  add(flag, [&duration](const std::string& value) -> Result<void> {
    const auto parsed = server::parse_duration(value);
    if (!parsed) return parsed.error();
    duration = std::chrono::ceil<std::chrono::milliseconds>(parsed.value());
    return {};
  });
}

void Flags::add_servers(std::vector<std::string>& servers, bool required) {
  Flag flag{"--servers", "HOST:PORT,...", "Client addresses of the nodes"};
  flag.repeated = true;
  flag.required = required;
  add(flag, [&servers](const std::string& value) -> Result<void> {
    const std::vector<std::string> named = split_servers(value);
    servers.insert(servers.end(), named.begin(), named.end());
    if (servers.empty()) return Error{ErrorCode::invalid_argument, "name a node as HOST:PORT"};
    return {};
  });
  add({"--group", "N", "Of nodes with many groups: the one that is meant, from 1 on"},
      [](const std::string& text) -> Result<void> {
        const auto number = server::parse_integer(text);
        if (!number || *number < 1) {
          return Error{ErrorCode::invalid_argument,
                       fmt::format("'{}' is not the number of a group", text)};
        }
        set_group(static_cast<std::size_t>(*number));
        return {};
      });
  add_login(*this);
  to_servers_ = true;
  add({"--tls-ca", "FILE",
       "Reach the servers by TLS, and believe those that this authority certifies, PEM. Without "
       "the flag: LEASEHOLD_TLS_CA of the environment; so with the next two"},
      files_.authority);
  add({"--tls-cert", "FILE", "Prove a user by this certificate, PEM (LEASEHOLD_TLS_CERT)"},
      files_.certificate);
  add({"--tls-key", "FILE", "Its private key, PEM (LEASEHOLD_TLS_KEY)"}, files_.key);
}

void Flags::add_words(std::vector<std::string>& words, const char* usage) {
  words_ = &words;
  usage_ = usage;
}

void Flags::set_footer(const std::string& text) {
  command_.footer(text.substr(text.find_first_not_of('\n')));
}

std::vector<std::string> Flags::begin(const std::vector<std::string>& given) {
  std::vector<std::string> out;
  const auto dashes = std::find(given.begin(), given.end(), "--");
  for (auto word = given.begin(); word != dashes; ++word) {
    const bool empty_value = word->rfind("--", 0) == 0 && word->find('=') + 1 == word->size();
    if (empty_value) {
      // CLI11 would take the next word for the value.
      out.push_back(word->substr(0, word->size() - 1));
      out.emplace_back();
    } else {
      out.push_back(*word);
    }
  }
  if (dashes == given.end()) return out;
  behind_dashes_.assign(dashes + 1, given.end());
  if (!places_ || rest_ != nullptr) return out;
  out.emplace_back("--");
  out.insert(out.end(), behind_dashes_.begin(), behind_dashes_.end());
  behind_dashes_.clear();
  return out;
}

std::string Flags::finish() {
  std::vector<std::string> words;
  for (const std::string& word : command_.remaining()) {
    if (word == "--") continue;
    if (begins_with_dash(word)) return fmt::format("unknown option '{}'", word);
    words.push_back(word);
  }
  std::vector<std::string>& rest = rest_ != nullptr ? *rest_ : words;
  rest.insert(rest.end(), behind_dashes_.begin(), behind_dashes_.end());
  if (words_ == nullptr && !words.empty())
    return fmt::format("unexpected word '{}'", words.front());
  if (words_ != nullptr) *words_ = std::move(words);
  return {};
}

CommandHelp Flags::help() const {
  CommandHelp out{command_.get_name(), command_.get_description(), {}, command_.get_footer()};
  if (!usage_.empty()) {
    out.text = fmt::format("Usage: leasehold {} {}\n\n{}", out.name, usage_, out.text);
  }
  for (const CLI::Option* option : std::as_const(command_).get_options()) {
    if (option == command_.get_help_ptr()) continue;
    FlagHelp flag;
    flag.name = option->get_positional() ? option->get_name() : "--" + option->get_lnames().front();
    if (option->get_items_expected_max() > 0) flag.value = option->get_type_name();
    flag.help = option->get_description();
    flag.default_text = option->get_default_str();
    flag.required = option->get_required();
    if (const auto found = choices_.find(option); found != choices_.end()) {
      flag.choices = found->second;
    }
    out.flags.push_back(std::move(flag));
  }
  return out;
}

// Parser

struct Parser::Entry {
  Entry(CLI::App& command, std::string program)
      : app(command), flags(command, std::move(program)) {}
  CLI::App& app;
  Flags flags;
  Run run;
  std::optional<Tool> tool;
};

Parser::Parser(const char* about, const std::string& version, const std::string& footer,
               const char* program)
    : app_(std::make_unique<CLI::App>(about, "leasehold")), program_(program) {
  app_->require_subcommand(1);
  app_->set_version_flag("--version", version);
  app_->footer(footer);
}

Parser::~Parser() = default;

void Parser::add(const Command& command) {
  CLI::App& app = *app_->add_subcommand(command.name, command.about);
  entries_.push_back(std::make_unique<Entry>(app, program_));
  Entry& entry = *entries_.back();
  app.allow_extras();
  app.formatter(std::make_shared<HelpText>(entry.flags.usage_));
  entry.run = command.add(entry.flags);
}

void Parser::add(const Tool& tool) {
  CLI::App& app = *app_->add_subcommand(tool.name, tool.about);
  entries_.push_back(std::make_unique<Entry>(app, program_));
  entries_.back()->tool = tool;
}

int Parser::run(const std::vector<std::string>& given) {
  if (given.empty() || begins_with_dash(given.front())) return run_without_command(given);
  for (const auto& entry : entries_) {
    if (entry->app.get_name() != given.front()) continue;
    if (entry->tool) return entry->tool->run({given.begin() + 1, given.end()});
    return run_command(*entry, given);
  }
  return refuse_command(given.front());
}

int Parser::run_command(Entry& entry, const std::vector<std::string>& given) {
  const std::string& name = given.front();
  std::vector<std::string> words = entry.flags.begin(given);
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  try {
    app_->parse(words);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app_->exit(error) : misused(name, text_of(error));
  }
  const std::string problem = entry.flags.finish();
  if (!problem.empty()) return misused(name, problem);
  if (entry.flags.to_servers_) {
    if (const auto set = set_access(entry.flags.files_); !set) {
      return misused(name, set.error().message);
    }
    if (auto login = log_in(); !login) return misused(name, login.error().message);
  }
  return entry.run();
}

int Parser::run_without_command(std::vector<std::string> given) {
  const std::string first = given.empty() ? "" : given.front();
  std::reverse(given.begin(), given.end());
  try {
    app_->parse(given);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error);
  }
  const std::string problem =
      first.empty() ? "the command is missing" : fmt::format("unknown option '{}'", first);
  std::cerr << "leasehold: " << problem << "\nleasehold --help lists the commands.\n";
  return kUsage;
}

int Parser::refuse_command(const std::string& word) const {
  std::vector<std::string> names;
  for (const auto& entry : entries_) names.push_back(entry->app.get_name());
  std::cerr << "leasehold: '" << word << "' is not a command" << did_you_mean(word, names)
            << "\nleasehold --help lists the commands.\n";
  return kUsage;
}

std::vector<CommandHelp> Parser::helps() const {
  std::vector<CommandHelp> helps;
  for (const auto& entry : entries_) {
    helps.push_back(entry->flags.help());
    if (!entry->tool) continue;
    helps.back().flags = flags_of_usage(entry->tool->usage);
    helps.back().text = entry->tool->usage;
  }
  return helps;
}

}  // namespace leasehold::cli
