// The `leasehold` program: flags and help texts. What each command does is in its own file.
#include <leasehold/server/client_commands.h>
#include <leasehold/server/demo.h>
#include <leasehold/server/report.h>
#include <leasehold/server/serve.h>
#include <leasehold/server/settings.h>
#include <leasehold/server/status_command.h>
#include <leasehold/sim/sim_command.h>
#include <leasehold/story/scenario_command.h>
#include <leasehold/story/timeline_command.h>

#include <CLI/CLI.hpp>

#include <chrono>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server {
namespace {

/// Exit status of a wrong flag or setting.
constexpr int kUsage = 2;

constexpr const char* kServeExamples = R"(Examples:
  leasehold serve --id 1 --data-dir /var/lib/leasehold --listen 10.0.0.1:7201 \
      --peers 1=10.0.0.1:7101,2=10.0.0.2:7101,3=10.0.0.3:7101
  leasehold serve --config /etc/leasehold.toml --id 2

The settings file has the same names without the dashes:
  id = 1
  data-dir = "/var/lib/leasehold"
  peers = ["1=10.0.0.1:7101", "2=10.0.0.2:7101", "3=10.0.0.3:7101"]
  lease = "1s"
A flag beats the file. Any Redis client speaks to --listen: redis-cli -p 7201 set k v)";

constexpr const char* kClientExamples = R"(Examples:
  leasehold status --servers 127.0.0.1:7201,127.0.0.1:7202,127.0.0.1:7203
  leasehold put --servers 127.0.0.1:7201 greeting hello
  leasehold get --servers 127.0.0.1:7201,127.0.0.1:7202 greeting)";

/// "1s" and the like, where CLI11 can say what is wrong.
RespClient::Timeout to_timeout(const char* flag, const std::string& text) {
  const auto duration = parse_duration(text);
  if (!duration) throw CLI::ValidationError(flag, duration.error().message);
  return std::chrono::ceil<RespClient::Timeout>(duration.value());
}

struct ServeFlags {
  std::string config;
  std::map<std::string, std::string> texts;
};

void add_serve(CLI::App& app, ServeFlags& flags) {
  CLI::App* serve = app.add_subcommand("serve", "Run one replica until SIGTERM or SIGINT");
  serve->footer(kServeExamples);
  serve->add_option("--config", flags.config, "Settings file in TOML")->type_name("FILE");
  for (const SettingSpec& spec : setting_specs()) {
    CLI::Option* option = serve->add_option_function<std::string>(
        "--" + std::string(spec.name),
        [&flags, name = std::string(spec.name)](const std::string& text) {
          flags.texts[name] = text;
        },
        spec.help);
    option->type_name(spec.type);
    if (*spec.default_text != '\0') option->default_str(spec.default_text);
  }
}

int serve(const ServeFlags& flags) {
  SettingTexts texts;
  if (!flags.config.empty()) {
    auto file = read_settings_file(flags.config);
    if (!file) {
      std::cerr << "leasehold serve: " << file.error().message << "\n";
      return kUsage;
    }
    texts = std::move(file).value();
  }
  for (const auto& [name, text] : flags.texts) texts[name] = text;
  const auto settings = make_settings(texts);
  if (!settings) {
    std::cerr << "leasehold serve: " << settings.error().message
              << "\nleasehold serve --help shows every setting.\n";
    return kUsage;
  }
  return run_serve(settings.value());
}

struct ClientFlags {
  std::vector<std::string> servers;
  std::string timeout = "5s";
  bool json = false;
  std::string watch;
  Color color = Color::automatic;
  bool if_absent = false;
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

int run(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "sim") {
    return sim::run_sim_command({argv + 2, argv + argc});
  }
  if (argc > 1 && std::string_view(argv[1]) == "scenario") {
    return story::run_scenario_command({argv + 2, argv + argc});
  }
  if (argc > 1 && std::string_view(argv[1]) == "timeline") {
    return story::run_timeline_command({argv + 2, argv + argc});
  }
  CLI::App app{
      "Leasehold: a replicated key-value store with linearizable reads from the leader's lease",
      "leasehold"};
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("leasehold ") + kVersion);
  app.footer("leasehold COMMAND --help tells about one command. A first look: leasehold demo");

  ServeFlags serve_flags;
  add_serve(app, serve_flags);
  ClientFlags flags;
  CLI::App* status = add_client_command(app, flags, "status", "Show one row for each node");
  status->add_flag("--json", flags.json, "A list of objects instead of a table");
  CLI::Option* watch = status->add_option(
      "--watch", flags.watch, "Ask again and again, with this pause (1s), until Ctrl-C");
  watch->expected(0, 1)->type_name("[DURATION]");
  status
      ->add_option("--color", flags.color,
                   "auto, always or never; auto: on a terminal, unless NO_COLOR is set")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Color>{
          {"auto", Color::automatic}, {"always", Color::always}, {"never", Color::never}}))
      ->type_name("WHEN");
  CLI::App* get = add_client_command(app, flags, "get", "Read a value, linearizably");
  CLI::App* put = add_client_command(app, flags, "put", "Write a value");
  CLI::App* del = add_client_command(app, flags, "del", "Delete a key");
  for (CLI::App* command : {get, put, del}) {
    command->add_option("key", flags.key, "The key")->required()->type_name("KEY");
  }
  put->add_option("value", flags.value, "The value")->required()->type_name("VALUE");
  put->add_flag("--if-absent", flags.if_absent, "Only if the key does not exist");
  DemoOptions demo_options;
  CLI::App* demo = app.add_subcommand(
      "demo", "Start three replicas on this machine, kill the leader, and tell what happens");
  demo->add_flag("--keep", demo_options.keep, "Keep the folder with the data and the logs");
  CLI::App* version = app.add_subcommand("version", "Print the version");
  // These have parsers of their own, see above.
  app.add_subcommand("sim", "Run simulated clusters with faults, by seed, and check them");
  app.add_subcommand("scenario", "Run stories with commands on real cores, and compare");
  app.add_subcommand("timeline", "Draw a scenario or a trace as an SVG");

  try {
    app.parse(argc, argv);
    if (app.got_subcommand("serve")) return serve(serve_flags);
    if (version->parsed()) {
      std::cout << "leasehold " << kVersion << "\n";
      return 0;
    }
    if (demo->parsed()) {
      demo_options.program = argv[0];
      return run_demo(demo_options);
    }
    const RespClient::Timeout timeout = to_timeout("--timeout", flags.timeout);
    if (status->parsed()) {
      StatusOptions wanted{flags.servers, timeout, flags.json, flags.color, std::nullopt};
      if (watch->count() > 0) {
        const bool bare = flags.watch.empty() || flags.watch == "true";
        wanted.watch = to_timeout("--watch", bare ? "1s" : flags.watch);
      }
      return run_status(wanted);
    }
    if (get->parsed()) return run_key_command(flags.servers, {"GET", flags.key}, timeout);
    if (del->parsed()) return run_key_command(flags.servers, {"DEL", flags.key}, timeout);
    std::vector<std::string> words = {"SET", flags.key, flags.value};
    if (flags.if_absent) words.emplace_back("NX");
    return run_key_command(flags.servers, words, timeout);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
}

}  // namespace
}  // namespace leasehold::server

int main(int argc, char** argv) {
  return leasehold::server::run(argc, argv);
}
