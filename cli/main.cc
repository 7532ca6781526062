// The `leasehold` program: the table of its commands. What each takes and does is in its own file.
#include <leasehold/cli/commands.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/manual.h>
#include <leasehold/cli/parser.h>
#include <leasehold/cli/tools.h>
#include <leasehold/server/commands/report.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>

namespace leasehold::cli {
namespace {

constexpr const char* kAbout =
    "Leasehold: a replicated key-value store with linearizable reads from the leader's lease";
constexpr const char* kFirstLook =
    "leasehold COMMAND --help explains one command. A first look: leasehold demo\n\n";

std::string version() {
  return std::string("leasehold ") + server::kVersion;
}

Run add_version(Flags&) {
  return [] {
    std::cout << version() << "\n";
    return 0;
  };
}

Run add_man(Flags&, const Parser& parser) {
  return [&parser] {
    std::cout << man_page(parser.helps(), server::kVersion);
    return 0;
  };
}

Run add_completion(Flags& flags, const Parser& parser) {
  const auto shell = std::make_shared<std::string>();
  Flag flag{"shell", "SHELL", "bash, zsh or fish"};
  flag.required = true;
  flag.choices = {"bash", "zsh", "fish"};
  flags.add(flag, *shell);
  flags.set_footer("Examples:\n  source <(leasehold completion bash)");
  return [shell, &parser] {
    const auto script = completion_script(parser.helps(), *shell);
    if (!script) return misused("completion", script.error().message);
    std::cout << script.value();
    return 0;
  };
}

void add_commands(Parser& parser) {
  const Command commands[] = {
      {"serve", "Run one replica until SIGTERM or SIGINT", add_serve},
      {"restore", "Make the data directory of a new group's member from a backup", add_restore},
      {"rebuild", "Replace the state of a stopped node, which differs, by that of another member",
       add_rebuild},
      {"recover",
       "Make a new group of what is left of one whose majority is lost for good, and say what is "
       "lost",
       add_recover},
      {"doctor",
       "Look for what is wrong with this machine, this configuration and the other nodes, and name "
       "the cure",
       add_doctor},
      {"advise", "Measure, and propose the numbers of the lease with their reasons", add_advise},
      {"status", "Show one row for each node", add_status},
      {"get", "Read a value, linearizably", add_get},
      {"put", "Write a value", add_put},
      {"del", "Delete a key", add_del},
      {"cert", "Make the key or the certificates by which nodes and clients prove themselves",
       add_cert},
      {"backup", "Write a backup on a node", add_backup},
      {"snapshot", "Make the store of each node durable, and cut its log", add_snapshot},
      {"demo",
       "Start three replicas here, transfer the leadership, kill the leader, and show what happens",
       add_demo},
      {"version", "Print the version", add_version},
      {"man", "Print the manual page, for man -l -",
       [&parser](Flags& flags) { return add_man(flags, parser); }},
      {"completion", "Print the completion script of a shell",
       [&parser](Flags& flags) { return add_completion(flags, parser); }},
      {"lease", "Grant, renew, revoke and show leases of clients", add_lease},
      {"elect", "Lead NAME, which has one leader at a time, or observe who leads", add_elect},
      {"lock", "Run a command while a lock is held, and stop it before the lock can end", add_lock},
      {"member", "List, add, promote, remove or replace the members of a running group",
       add_member},
      {"pool", "Show where the replicas of many groups are, balance them, and empty a node",
       add_pool},
      {"register", "Keep a key while this command runs, so that others see that a service is alive",
       add_register},
      {"settings", "Show, check and change the numbers on which a group agrees", add_settings},
      {"slots", "Show which group has which slots of keys, and move them while clients use them",
       add_slots},
      {"trace", "Record the protocol of a running group for a bug report, and print it", add_trace},
      {"transfer", "Transfer the leadership to another node", add_transfer},
      {"watch", "Print the changes of keys in their order", add_watch},
  };
  for (const Command& command : commands) parser.add(command);
}

int run(int argc, char** argv) {
  Parser parser(kAbout, version(), std::string(kFirstLook) + kExitStatuses,
                argc > 0 ? argv[0] : "leasehold");
  add_commands(parser);
  add_tools(parser);
  return parser.run({argv + std::min(argc, 1), argv + argc});
}

}  // namespace
}  // namespace leasehold::cli

int main(int argc, char** argv) {
  try {
    return leasehold::cli::run(argc, argv);
  } catch (const nlohmann::json::exception& wrong) {
    std::cerr << "leasehold: a server's answer has another form than this build reads ("
              << wrong.what()
              << "). Ask with the server's build; what was asked for may have been done\n";
    return leasehold::cli::kOutcomeUnknown;
  }
}
