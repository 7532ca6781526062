#include <leasehold/cli/manual.h>

#include <fmt/format.h>

#include <functional>
#include <sstream>

namespace leasehold::cli {

const char* const kExitStatuses =
    "Exit status:\n"
    "  0  done\n"
    "  1  the answer is no: no such key, the key exists, the cluster is not healthy, a check\n"
    "     found something; of serve: the node could not start or go on; of restore: the backup or\n"
    "     the folder cannot be used, and why\n"
    "  2  a flag, a setting or an argument is wrong\n"
    "  3  outcome unknown: the command may have been executed, or may still be\n"
    "  4  not executed: refused, or no node took it in time\n"
    "  5  of serve: this node was removed from its group; it is not to be started again as it is\n"
    "  6  of lock and elect: it was over; the command of lock was stopped if it still ran. Else\n"
    "     lock ends with the status of its command";

namespace {

bool takes_file(const FlagHelp& flag) {
  return flag.value == "FILE" || flag.value == "DIR";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string replaced(std::string_view text, const std::function<std::string(char)>& escape) {
  std::string out;
  for (const char c : text) out += escape(c);
  return out;
}

// ---- roff ----

std::string roff(std::string_view text) {
  return replaced(text, [](char c) -> std::string {
    if (c == '\\') return "\\e";
    if (c == '-') return "\\-";
    if (c == '\'') return "\\(aq";
    return {c};
  });
}

/// Lines as they are. A line that begins with a dot would be a request.
void verbatim(std::ostream& out, const std::string& text) {
  out << ".nf\n";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.front() == '.') out << "\\&";
    out << roff(line) << "\n";
  }
  out << ".fi\n";
}

void roff_flag(std::ostream& out, const FlagHelp& flag) {
  out << ".TP\n\\fB" << roff(flag.name) << "\\fR";
  if (!flag.value.empty()) out << " \\fI" << roff(flag.value) << "\\fR";
  out << "\n\\&" << roff(flag.help);
  if (flag.required) out << " (required)";
  if (!flag.default_text.empty()) out << " (default " << roff(flag.default_text) << ")";
  out << "\n";
}

// ---- the shells ----

/// Between single quotes in bash and zsh. (Not `quoted`: std::quoted could be taken in its place.)
std::string shell_word(std::string_view text) {
  return fmt::format(
      "'{}'", replaced(text, [](char c) { return c == '\'' ? "'\\''" : std::string(1, c); }));
}

std::string bash_script(const std::vector<CommandHelp>& commands) {
  std::vector<std::string> names;
  std::ostringstream cases;
  std::ostringstream values;
  for (const CommandHelp& command : commands) {
    names.push_back(command.name);
    std::vector<std::string> words;
    for (const FlagHelp& flag : command.flags) {
      if (!flag.positional()) {
        words.push_back(flag.name);
        if (flag.choices.empty()) continue;
        values << "    " << command.name << flag.name
               << ") words=" << shell_word(joined(flag.choices)) << " ;;\n";
      } else {
        words.insert(words.end(), flag.choices.begin(), flag.choices.end());
      }
    }
    words.emplace_back("--help");
    cases << "    " << command.name << ") words=" << shell_word(joined(words)) << " ;;\n";
  }
  std::ostringstream out;
  out << "# bash completion for leasehold; where it offers nothing, bash offers files.\n"
      << "_leasehold() {\n"
      << "  local current=${COMP_WORDS[COMP_CWORD]} words=''\n"
      << "  case ${COMP_WORDS[1]} in\n"
      << cases.str() << "  esac\n"
      << "  case ${COMP_WORDS[1]}${COMP_WORDS[COMP_CWORD - 1]} in\n"
      << values.str() << "  esac\n"
      << "  [ \"$COMP_CWORD\" -eq 1 ] && words=" << shell_word(joined(names) + " --help --version")
      << "\n"
      << "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      << "}\n"
      << "complete -o default -F _leasehold leasehold\n";
  return out.str();
}

std::string zsh_script(const std::vector<CommandHelp>& commands) {
  const auto plain = [](std::string_view text) {
    return replaced(text, [](char c) -> std::string {
      if (c == '[' || c == ']' || c == ':' || c == '\\') return std::string("\\") + c;
      return {c};
    });
  };
  std::ostringstream out;
  out << "#compdef leasehold\n"
      << "_leasehold() {\n"
      << "  local -a commands\n"
      << "  commands=(\n";
  for (const CommandHelp& command : commands) {
    out << "    " << shell_word(fmt::format("{}:{}", command.name, plain(command.about))) << "\n";
  }
  out << "  )\n"
      << "  if (( CURRENT == 2 )); then\n"
      << "    _describe command commands\n"
      << "    return\n"
      << "  fi\n"
      << "  local command=${words[2]}\n"
      << "  shift words\n"
      << "  (( CURRENT-- ))\n"
      << "  case $command in\n";
  for (const CommandHelp& command : commands) {
    out << "    " << command.name << ")\n      _arguments";
    for (const FlagHelp& flag : command.flags) {
      std::string action;
      if (!flag.choices.empty()) action = fmt::format("({})", joined(flag.choices));
      if (takes_file(flag)) action = "_files";
      if (flag.positional()) {
        out << " \\\n        " << shell_word(fmt::format(":{}:{}", plain(flag.help), action));
      } else {
        std::string spec = fmt::format("{}[{}]", flag.name, plain(flag.help));
        if (!flag.value.empty()) spec += fmt::format(":{}:{}", plain(flag.value), action);
        out << " \\\n        " << shell_word(spec);
      }
    }
    out << " \\\n        '--help[Print the help of this command]'\n      ;;\n";
  }
  out << "  esac\n"
      << "}\n"
      << "_leasehold \"$@\"\n";
  return out.str();
}

std::string fish_script(const std::vector<CommandHelp>& commands) {
  const auto single = [](std::string_view text) {
    return fmt::format("'{}'", replaced(text, [](char c) -> std::string {
                         if (c == '\'' || c == '\\') return std::string("\\") + c;
                         return {c};
                       }));
  };
  std::ostringstream out;
  out << "# fish completion for leasehold\n";
  for (const CommandHelp& command : commands) {
    out << "complete -c leasehold -f -n __fish_use_subcommand -a " << command.name << " -d "
        << single(command.about) << "\n";
    const std::string when =
        "complete -c leasehold -n " + single("__fish_seen_subcommand_from " + command.name);
    for (const FlagHelp& flag : command.flags) {
      if (flag.positional()) {
        if (!flag.choices.empty()) out << when << " -f -a " << single(joined(flag.choices)) << "\n";
        continue;
      }
      out << when << " -l " << flag.name.substr(2);
      if (!flag.value.empty()) out << (takes_file(flag) ? " -r" : " -x");
      if (!flag.choices.empty()) out << " -a " << single(joined(flag.choices));
      out << " -d " << single(flag.help) << "\n";
    }
    out << when << " -l help -d 'Print the help of this command'\n";
  }
  return out.str();
}

}  // namespace

std::vector<FlagHelp> flags_of_usage(std::string_view usage) {
  std::vector<FlagHelp> flags;
  std::istringstream lines{std::string(usage)};
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("  --", 0) != 0) continue;
    const std::size_t end = line.find("  ", 2);
    const std::string head = line.substr(2, end == std::string::npos ? end : end - 2);
    FlagHelp flag;
    flag.name = head.substr(0, head.find_first_of(" =["));
    if (flag.name == "--help") continue;
    if (flag.name.size() < head.size()) flag.value = head.substr(flag.name.size() + 1);
    if (end != std::string::npos) {
      const std::size_t begin = line.find_first_not_of(' ', end);
      if (begin != std::string::npos) flag.help = line.substr(begin);
    }
    flags.push_back(std::move(flag));
  }
  return flags;
}

std::string man_page(const std::vector<CommandHelp>& commands, std::string_view version) {
  std::ostringstream out;
  out << ".TH LEASEHOLD 1 \"\" \"leasehold " << version << "\" \"Leasehold\"\n"
      << ".SH NAME\n"
      << "leasehold \\- a replicated key\\-value store with linearizable reads from the "
         "leader\\(aqs lease\n"
      << ".SH SYNOPSIS\n"
      << ".B leasehold\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
      << ".SH DESCRIPTION\n"
      << "Runs a node, speaks to running nodes, or simulates them. Any client of Redis speaks to a "
         "node too.\n"
      << ".SH COMMANDS\n";
  for (const CommandHelp& command : commands) {
    out << ".SS \"leasehold " << roff(command.name) << "\"\n\\&" << roff(command.about) << ".\n";
    for (const FlagHelp& flag : command.flags) roff_flag(out, flag);
    if (!command.text.empty()) {
      out << ".PP\n";
      verbatim(out, command.text);
    }
  }
  out << ".SH EXIT STATUS\n";
  const std::string statuses(kExitStatuses);
  verbatim(out, statuses.substr(statuses.find('\n') + 1));
  out << ".SH ENVIRONMENT\n"
      << ".TP\n\\fBNO_COLOR\\fR\nSet to anything: no colours, unless \\fB\\-\\-color always\\fR "
         "asks for them.\n"
      << ".SH SEE ALSO\n.BR redis\\-cli (1)\n";
  return out.str();
}

Result<std::string> completion_script(const std::vector<CommandHelp>& commands,
                                      std::string_view shell) {
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  return Error{ErrorCode::invalid_argument,
               fmt::format("no completion for '{}'; choose bash, zsh or fish", shell)};
}

}  // namespace leasehold::cli
