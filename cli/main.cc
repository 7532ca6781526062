// The `leasehold` program: flags and help texts. What each command does is in its own file.
#include <leasehold/check/check_command.h>
#include <leasehold/cli/backup_command.h>
#include <leasehold/cli/demo.h>
#include <leasehold/cli/elect_command.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/holder_flags.h>
#include <leasehold/cli/key_command.h>
#include <leasehold/cli/lease_command.h>
#include <leasehold/cli/lock_command.h>
#include <leasehold/cli/manual.h>
#include <leasehold/cli/member_command.h>
#include <leasehold/cli/register_command.h>
#include <leasehold/cli/restore_command.h>
#include <leasehold/cli/status_command.h>
#include <leasehold/cli/transfer_command.h>
#include <leasehold/cli/watch_command.h>
#include <leasehold/explore/explore_command.h>
#include <leasehold/server/commands/report.h>
#include <leasehold/server/serve.h>
#include <leasehold/server/settings.h>
#include <leasehold/sim/sim_command.h>
#include <leasehold/story/scenario_command.h>
#include <leasehold/story/telling.h>
#include <leasehold/story/timeline_command.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::cli {
namespace {

constexpr const char* kServeExamples = R"(Examples:
  leasehold serve --id 1 --data-dir /var/lib/leasehold --listen 10.0.0.1:7201 \
      --peers 1=10.0.0.1:7101,2=10.0.0.2:7101,3=10.0.0.3:7101
  leasehold serve --config /etc/leasehold.toml --id 2
A node for a group that runs; it waits until leasehold member add 4=10.0.0.4:7101 adds it:
  leasehold serve --id 4 --data-dir /var/lib/leasehold --listen 10.0.0.4:7201 \
      --peer-listen 10.0.0.4:7101 --join 10.0.0.1:7101,10.0.0.2:7101

The settings file has the same names without the dashes:
  id = 1
  data-dir = "/var/lib/leasehold"
  peers = ["1=10.0.0.1:7101", "2=10.0.0.2:7101", "3=10.0.0.3:7101"]
  lease = "1s"
A flag beats the file. Any Redis client speaks to --listen: redis-cli -p 7201 set k v)";

constexpr const char* kClientExamples = R"(Examples:
  leasehold status --servers 127.0.0.1:7201,127.0.0.1:7202 --watch 500ms
  leasehold status --servers 127.0.0.1:7201,127.0.0.1:7202,127.0.0.1:7203
  leasehold put --servers 127.0.0.1:7201 greeting hello
  leasehold get --servers 127.0.0.1:7201,127.0.0.1:7202 greeting)";

/// "1s" and the like, where CLI11 can say what is wrong.
client::RespClient::Timeout to_timeout(const char* flag, const std::string& text) {
  const auto duration = server::parse_duration(text);
  if (!duration) throw CLI::ValidationError(flag, duration.error().message);
  return std::chrono::ceil<client::RespClient::Timeout>(duration.value());
}

/// One of a few words, and an error that names them.
CLI::Validator one_of(const std::vector<std::string>& words) {
  return CLI::Validator(
      [words](std::string& given) -> std::string {
        if (std::find(words.begin(), words.end(), given) != words.end()) return "";
        std::string text = "'" + given + "' is none of:";
        for (const std::string& word : words) text += " " + word;
        return text;
      },
      "");
}

constexpr const char* kBackupExamples = R"(Examples:
  leasehold backup --servers 10.0.0.1:7201,10.0.0.2:7201 monday
writes a snapshot to backups/monday in the data directory of the node that takes it, while reads and
writes go on, and prints the path. Everything that was acknowledged before is in it. Copy the file
to another machine; leasehold restore makes a new group of it.)";

constexpr const char* kSnapshotExamples = R"(Examples:
  leasehold snapshot --servers 10.0.0.1:7201,10.0.0.2:7201,10.0.0.3:7201
Each node makes its store durable as it is now and cuts its log down to --log-tail, which it does by
itself when there is --log-cut more.)";

constexpr const char* kRestoreExamples = R"(Examples:
  leasehold restore --from monday --check
  leasehold restore --from monday --id 1 --data-dir /var/lib/leasehold \
      --peers 1=10.0.0.1:7101,2=10.0.0.2:7101,3=10.0.0.3:7101

Do this for every member, with the same file and the same --peers and --cluster, then start them.
They form a new group: its nodes and those of the group that was backed up refuse each other, even
under the same names and addresses. Everything is checked before anything is written; a restoration
that was interrupted is begun again with the same command.)";

struct ServeFlags {
  std::string config;
  std::map<std::string, std::string> texts;
};

void add_setting(CLI::App& command, ServeFlags& flags, const server::SettingSpec& spec) {
  CLI::Option* option = command.add_option_function<std::string>(
      "--" + std::string(spec.name),
      [&flags, name = std::string(spec.name)](const std::string& text) {
        flags.texts[name] = text;
      },
      spec.help);
  option->type_name(spec.type);
  if (*spec.default_text != '\0') option->default_str(spec.default_text);
}

void add_serve(CLI::App& app, ServeFlags& flags) {
  CLI::App* serve = app.add_subcommand("serve", "Run one replica until SIGTERM or SIGINT");
  serve->footer(kServeExamples);
  serve->add_option("--config", flags.config, "Settings file in TOML")->type_name("FILE");
  for (const server::SettingSpec& spec : server::setting_specs()) add_setting(*serve, flags, spec);
}

struct RestoreFlags {
  ServeFlags settings;
  std::string from;
  bool check = false;
};

CLI::App* add_restore(CLI::App& app, RestoreFlags& flags) {
  CLI::App* restore =
      app.add_subcommand("restore", "Make the data directory of a new group's member of a backup");
  restore->footer(kRestoreExamples);
  restore->add_option("--from", flags.from, "The backup")->required()->type_name("FILE");
  restore->add_flag("--check", flags.check, "Only check the backup, and tell what is in it");
  for (const server::SettingSpec& spec : server::setting_specs()) {
    const std::string_view name = spec.name;
    if (name == "id" || name == "data-dir" || name == "peers" || name == "cluster") {
      add_setting(*restore, flags.settings, spec);
    }
  }
  return restore;
}

int restore(const RestoreFlags& flags) {
  if (flags.check) return run_verify(flags.from);
  auto settings = server::make_settings(flags.settings.texts);
  if (settings && settings.value().node.peers.empty()) {
    settings = Error{ErrorCode::invalid_argument,
                     "--peers is missing: every first member, as in 1=host:port,2=host:port"};
  }
  if (settings) return run_restore(settings.value(), flags.from);
  std::cerr << "leasehold restore: " << settings.error().message
            << "\nleasehold restore --help shows what it needs.\n";
  return kUsage;
}

int serve(const ServeFlags& flags) {
  server::SettingTexts texts;
  if (!flags.config.empty()) {
    auto file = server::read_settings_file(flags.config);
    if (!file) {
      std::cerr << "leasehold serve: " << file.error().message << "\n";
      return kUsage;
    }
    texts = std::move(file).value();
  }
  for (const auto& [name, text] : flags.texts) texts[name] = text;
  const auto settings = server::make_settings(texts);
  if (!settings) {
    std::cerr << "leasehold serve: " << settings.error().message
              << "\nleasehold serve --help shows every setting.\n";
    return kUsage;
  }
  return server::run_serve(settings.value());
}

struct ClientFlags {
  std::vector<std::string> servers;
  std::string timeout = "5s";
  bool json = false;
  std::string watch;
  std::string color = "auto";
  bool if_absent = false;
  bool sequential = false;
  std::int64_t lease = 0;  ///< 0: none
  bool exactly_once = false;
  bool stale = false;
  std::string key;
  std::string value;
};

CLI::App* add_client_command(CLI::App& app, ClientFlags& flags, const char* name,
                             const char* about) {
  CLI::App* command = app.add_subcommand(name, about);
  command->add_option("--servers", flags.servers, "Client addresses of the nodes")
      ->delimiter(',')
      ->allow_extra_args(false)  // or it would swallow the key behind it
      ->required()
      ->type_name("HOST:PORT,...");
  command->add_option("--timeout", flags.timeout, "How long to try")
      ->capture_default_str()
      ->type_name("DURATION");
  command->footer(kClientExamples);
  return command;
}

/// A command with a parser of its own. Its usage text lists a flag a line: the manual and the
/// completions are made of it.
struct OwnCommand {
  const char* name;
  const char* about;
  std::string usage;
  int (*run)(const std::vector<std::string>& arguments);
};

const std::vector<OwnCommand>& own_commands() {
  static const std::vector<OwnCommand> commands = {
      {"lease", "Grant, renew, revoke and show leases of clients", kLeaseUsage, run_lease_command},
      {"elect", "Stand for an office that one holds at a time, or watch who does",
       std::string(kElectUsage) + kHolderUsage, run_elect_command},
      {"lock", "Run a command while a lock is held, and stop it before the lock can end",
       std::string(kLockUsage) + kHolderUsage, run_lock_command},
      {"member", "List, add, promote, remove or replace the members of a running group",
       kMemberUsage, run_member_command},
      {"register", "Keep a key for as long as this runs, so that others see that it is alive",
       std::string(kRegisterUsage) + kHolderUsage, run_register_command},
      {"sim", "Run simulated clusters with faults, by seed, and check them",
       std::string(sim::kSimUsage) + story::kTellingUsage, sim::run_sim_command},
      {"check", "Judge a recorded history: is it linearizable?", check::kCheckUsage,
       check::run_check_command},
      {"explore", "Take a few cores through every schedule within bounds", explore::kExploreUsage,
       explore::run_explore_command},
      {"scenario", "Run stories with commands on real cores, and compare",
       std::string(story::kScenarioUsage) + story::kTellingUsage, story::run_scenario_command},
      {"timeline", "Draw a scenario or a trace as an SVG", story::kTimelineUsage,
       story::run_timeline_command},
      {"transfer", "Hand the leadership over to another node", kTransferUsage,
       run_transfer_command},
      {"watch", "Say what happens to keys, in order, wherever it is served", kWatchUsage,
       run_watch_command},
  };
  return commands;
}

const std::vector<std::string> kColors = {"auto", "always", "never"};
const std::vector<std::string> kShells = {"bash", "zsh", "fish"};

FlagHelp help_of(const CLI::Option& option) {
  FlagHelp flag;
  flag.name = option.get_positional() ? option.get_name() : "--" + option.get_lnames().front();
  if (option.get_items_expected_max() > 0) flag.value = option.get_type_name();
  flag.help = option.get_description();
  flag.default_text = option.get_default_str();
  flag.required = option.get_required();
  if (flag.name == "--color") flag.choices = kColors;
  if (flag.name == "shell") flag.choices = kShells;
  return flag;
}

/// What --help knows of every command.
std::vector<CommandHelp> command_helps(const CLI::App& app) {
  std::vector<CommandHelp> helps;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    CommandHelp help{command->get_name(), command->get_description(), {}, command->get_footer()};
    for (const CLI::Option* option : command->get_options()) {
      if (option != command->get_help_ptr()) help.flags.push_back(help_of(*option));
    }
    for (const OwnCommand& own : own_commands()) {
      if (help.name != own.name) continue;
      help.flags = flags_of_usage(own.usage);
      help.text = own.usage;
    }
    helps.push_back(std::move(help));
  }
  return helps;
}

int run(int argc, char** argv) {
  for (const OwnCommand& own : own_commands()) {
    if (argc > 1 && std::string_view(argv[1]) == own.name) return own.run({argv + 2, argv + argc});
  }
  CLI::App app{
      "Leasehold: a replicated key-value store with linearizable reads from the leader's lease",
      "leasehold"};
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("leasehold ") + server::kVersion);
  app.footer(
      std::string(
          "leasehold COMMAND --help tells about one command. A first look: leasehold demo\n\n") +
      kExitStatuses);

  ServeFlags serve_flags;
  add_serve(app, serve_flags);
  RestoreFlags restore_flags;
  CLI::App* restored = add_restore(app, restore_flags);
  ClientFlags flags;
  CLI::App* status = add_client_command(app, flags, "status", "Show one row for each node");
  status->add_flag("--json", flags.json, "A list of objects instead of a table");
  CLI::Option* watch = status->add_option(
      "--watch", flags.watch, "Ask again and again, with this pause (1s), until Ctrl-C");
  watch->expected(0, 1)->type_name("[DURATION]");
  status
      ->add_option("--color", flags.color,
                   "Colours: auto, always or never; auto is on a terminal, unless NO_COLOR is set")
      ->check(one_of(kColors))
      ->capture_default_str()
      ->type_name("WHEN");
  CLI::App* get = add_client_command(app, flags, "get", "Read a value, linearizably");
  CLI::App* put = add_client_command(app, flags, "put", "Write a value");
  CLI::App* del = add_client_command(app, flags, "del", "Delete a key");
  for (CLI::App* command : {get, put, del}) {
    command->add_option("key", flags.key, "The key")->required()->type_name("KEY");
  }
  put->add_option("value", flags.value, "The value")->required()->type_name("VALUE");
  CLI::Option* if_absent =
      put->add_flag("--if-absent", flags.if_absent, "Only if the key does not exist");
  put->add_flag("--sequential", flags.sequential,
                "KEY is the beginning of a new key, a number that rises its end; tells the key")
      ->excludes(if_absent);
  put->add_option("--lease", flags.lease, "The key goes with the lease of this number")
      ->check(CLI::Range(std::int64_t{1}, std::numeric_limits<std::int64_t>::max()).description(""))
      ->type_name("ID");
  for (CLI::App* command : {put, del}) {
    command->add_flag("--exactly-once", flags.exactly_once,
                      "Try again, in a session, until it is known what came of it");
  }
  CLI::App* backup = add_client_command(app, flags, "backup", "Write a backup on a node");
  backup->add_option("name", flags.key, "The file's name; without one it tells the time")
      ->type_name("NAME");
  backup->add_flag("--stale", flags.stale,
                   "What the node has, though it may lack writes; needs no leader");
  backup->add_flag("--json", flags.json, "One object instead of a sentence");
  backup->footer(kBackupExamples);
  CLI::App* snapshot = add_client_command(app, flags, "snapshot",
                                          "Make the store of each node durable, and cut its log");
  snapshot->add_flag("--json", flags.json, "A list of objects instead of sentences");
  snapshot->footer(kSnapshotExamples);
  DemoOptions demo_options;
  CLI::App* demo = app.add_subcommand("demo",
                                      "Start three replicas here, hand the leadership over, kill "
                                      "the leader, and tell what happens");
  demo->add_flag("--keep", demo_options.keep, "Keep the folder with the data and the logs");
  CLI::App* version = app.add_subcommand("version", "Print the version");
  CLI::App* man = app.add_subcommand("man", "Print the manual page, for man -l -");
  CLI::App* completion = app.add_subcommand("completion", "Print the completion script of a shell");
  std::string shell;
  completion->add_option("shell", shell, "bash, zsh or fish")
      ->required()
      ->check(one_of(kShells))
      ->type_name("SHELL");
  completion->footer("Examples:\n  source <(leasehold completion bash)");
  for (const OwnCommand& own : own_commands()) app.add_subcommand(own.name, own.about);

  try {
    app.parse(argc, argv);
    if (app.got_subcommand("serve")) return serve(serve_flags);
    if (restored->parsed()) return restore(restore_flags);
    if (version->parsed()) {
      std::cout << "leasehold " << server::kVersion << "\n";
      return 0;
    }
    if (man->parsed()) {
      std::cout << man_page(command_helps(app), server::kVersion);
      return 0;
    }
    if (completion->parsed()) {
      const auto script = completion_script(command_helps(app), shell);
      if (!script) throw CLI::ValidationError("shell", script.error().message);
      std::cout << script.value();
      return 0;
    }
    if (demo->parsed()) {
      demo_options.program = argv[0];
      return run_demo(demo_options);
    }
    const client::RespClient::Timeout timeout = to_timeout("--timeout", flags.timeout);
    if (status->parsed()) {
      StatusOptions wanted{flags.servers, timeout, flags.json, server::Color::automatic,
                           std::nullopt};
      if (flags.color != "auto")
        wanted.color = flags.color == "always" ? server::Color::always : server::Color::never;
      if (watch->count() > 0) {
        const bool bare = flags.watch.empty() || flags.watch == "true";
        wanted.watch = to_timeout("--watch", bare ? "1s" : flags.watch);
      }
      return run_status(wanted);
    }
    if (backup->parsed()) {
      return run_backup({flags.servers, timeout, flags.key, flags.stale, flags.json});
    }
    if (snapshot->parsed()) return run_snapshot({flags.servers, timeout, flags.json});
    KeyCommand command{flags.servers, {"SET", flags.key, flags.value}, timeout, flags.exactly_once};
    if (flags.sequential) command.words.front() = "SETSEQ";
    if (flags.if_absent) command.words.emplace_back("NX");
    if (flags.lease != 0) {
      command.words.insert(command.words.end(), {"LEASE", std::to_string(flags.lease)});
    }
    if (get->parsed()) command.words = {"GET", flags.key};
    if (del->parsed()) command.words = {"DEL", flags.key};
    return run_key_command(command);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
}

}  // namespace
}  // namespace leasehold::cli

int main(int argc, char** argv) {
  return leasehold::cli::run(argc, argv);
}
