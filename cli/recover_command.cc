#include <leasehold/cli/commands.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/recovered_state.h>
#include <leasehold/cli/recovery_file.h>
#include <leasehold/node/node_recovery.h>
#include <leasehold/node/node_retired.h>
#include <leasehold/storage/private_folder.h>

#include <fmt/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

constexpr const char* kRecoverText = R"(
look   prints what the directory of a stopped member holds: keep it in a file
plan   says what may be lost, and which member the group goes on from; --to FILE keeps the plan.
       Give it the files of look of ALL members that are left, or --data-dir for each of them
apply  on the machine of each member of the plan: retires its directory, and at the member that
       the group goes on from writes the state to the file --to, for leasehold restore

Examples:
  leasehold recover look --data-dir /var/lib/leasehold > node-1.json     # at each survivor
  leasehold recover plan node-1.json node-4.json --to plan.json
  leasehold recover apply plan.json --data-dir /var/lib/leasehold --to /safe/recovered
  leasehold restore --from /safe/recovered --id 1 --data-dir /var/lib/leasehold-new --peers ...

Only for a group whose majority is lost for good. While the lost members may come back, wait for
them: nothing is lost then. All members that are left have to be stopped. Run it as the user that
the nodes run as.)";

struct WantedRecovery {
  std::vector<std::string> words;  ///< look, plan or apply, and files
  std::vector<std::string> dirs;
  std::string to;
  std::string yes_lose_data;
};

/// More than the reports of all members.
constexpr std::size_t kRecoveryFileBytesMax = std::size_t{16} << 20U;

Result<std::vector<node::Survivor>> read_reports(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kRecoveryFileBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  if (text.empty()) return Error{ErrorCode::io, "cannot read " + path};
  auto reports = decode_reports(text);
  if (!reports) return Error{reports.error().code, path + ": " + reports.error().message};
  return reports;
}

Result<void> write_plan(const std::string& path, const std::vector<node::Survivor>& survivors) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    return Error{ErrorCode::in_use, path + " exists: nothing is overwritten"};
  }
  std::ofstream file(path, std::ios::binary);
  file << encode_plan(survivors);
  file.close();
  if (file) return {};
  return Error{ErrorCode::io, "cannot write " + path};
}

int look(const WantedRecovery& wanted) {
  if (wanted.dirs.size() != 1 || wanted.words.size() != 1) {
    return misused("recover", "look needs one --data-dir, and no files");
  }
  const auto survivor = look_at_survivor(wanted.dirs.front());
  if (!survivor) return fail("recover", survivor.error().message, kNo);
  std::cout << encode_report(survivor.value());
  return 0;
}

int plan(const WantedRecovery& wanted) {
  std::vector<node::Survivor> survivors;
  for (std::size_t i = 1; i < wanted.words.size(); ++i) {
    auto reports = read_reports(wanted.words[i]);
    if (!reports) return fail("recover", reports.error().message, kNo);
    for (node::Survivor& one : reports.value()) survivors.push_back(std::move(one));
  }
  for (const std::string& dir : wanted.dirs) {
    auto survivor = look_at_survivor(dir);
    if (!survivor) return fail("recover", survivor.error().message, kNo);
    survivors.push_back(std::move(survivor).value());
  }
  const auto made = node::plan_recovery(survivors);
  if (!made) return fail("recover", made.error().message, kNo);
  std::cout << loss_text(survivors, made.value());
  if (wanted.to.empty()) return 0;
  if (auto written = write_plan(wanted.to, survivors); !written) {
    return fail("recover", written.error().message, kNo);
  }
  const std::uint64_t source = survivors[made.value().source].id.value();
  std::cout << fmt::format(
      "\nThe plan is in {}. Give it to each survivor: leasehold recover apply {} --data-dir DIR,\n"
      "and at node {} with --to FILE, too.\n",
      wanted.to, wanted.to, source);
  return 0;
}

/// The member of the plan whose directory it is; it is as it was when the plan was made.
Result<std::size_t> find_in_plan(const std::vector<node::Survivor>& survivors,
                                 const node::Survivor& here, const std::string& dir) {
  for (std::size_t i = 0; i < survivors.size(); ++i) {
    const node::Survivor& one = survivors[i];
    if (one.cluster_id != here.cluster_id || one.id != here.id || one.uuid != here.uuid) continue;
    if (one.last == here.last && one.base == here.base) return i;
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("{} has changed since the plan was made: a node has run on it. Stop all "
                    "survivors, look at each again, and make another plan",
                    dir)};
  }
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} is of node {} of cluster {}, which is not in the plan: give another "
                           "directory, or make a plan with it",
                           dir, here.id.value(), hex_text(here.cluster_id))};
}

/// Whether the person means this cluster.
Result<void> confirm(const WantedRecovery& wanted, std::uint64_t cluster_id) {
  const std::string id = hex_text(cluster_id);
  if (!wanted.yes_lose_data.empty()) {
    if (wanted.yes_lose_data == id) return {};
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("--yes-lose-data names cluster {}, but this is cluster {}: nothing was "
                    "done",
                    wanted.yes_lose_data, id)};
  }
  if (::isatty(STDIN_FILENO) == 0) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("nobody can be asked here: confirm with --yes-lose-data {}; nothing was "
                    "done",
                    id)};
  }
  std::cout << "\nType the cluster id, " << id << ", to go on: " << std::flush;
  std::string typed;
  std::getline(std::cin, typed);
  if (typed == id) return {};
  return Error{ErrorCode::invalid_argument, "that is not its id: nothing was done"};
}

/// A directory that another plan has retired stays so.
Result<void> check_retirement(const std::string& dir, std::uint64_t number) {
  const auto retired = node::load_retired(dir);
  if (!retired) return retired.error();
  if (!retired.value() || retired.value()->plan == number) return {};
  return Error{
      ErrorCode::in_use,
      fmt::format("{} was retired by the recovery {}, and this is the recovery {}: two would "
                  "make two groups. If nothing of the first one was ever started, remove "
                  "{}/RETIRED and go on",
                  dir, hex_text(retired.value()->plan), hex_text(number), dir)};
}

Result<void> check_target(const std::string& to, bool is_source, std::uint64_t source) {
  std::error_code error;
  if (is_source && to.empty()) {
    return Error{ErrorCode::invalid_argument,
                 "the group goes on from this node: name the file for its state by --to"};
  }
  if (!is_source && !to.empty()) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("the group goes on from node {}, not from this one: leave out --to", source)};
  }
  if (is_source && std::filesystem::exists(std::filesystem::symlink_status(to, error))) {
    return Error{ErrorCode::in_use, to + " exists: nothing is overwritten"};
  }
  return {};
}

/// After it no lease is left that this node's answers have prolonged.
void wait_for_promises(const node::RecoveryPlan& plan) {
  std::cout << fmt::format("\nwaiting {:.1f} s: a lost leader may still rely on a promise\n",
                           std::chrono::duration<double>(plan.wait).count())
            << std::flush;
  std::this_thread::sleep_for(plan.wait);
}

/// All of apply behind the checks of the command line.
Result<void> carry_out(const WantedRecovery& wanted, const std::vector<node::Survivor>& survivors,
                       const node::RecoveryPlan& made) {
  const std::string& dir = wanted.dirs.front();
  auto log = node::StoppedLog::open(dir);
  if (!log) return log.error();
  const auto here = find_in_plan(survivors, log.value()->survivor(), dir);
  if (!here) return here.error();
  const bool is_source = here.value() == made.source;
  const node::Survivor& source = survivors[made.source];
  if (auto fits = check_target(wanted.to, is_source, source.id.value()); !fits) return fits;
  if (auto fits = check_retirement(dir, made.number); !fits) return fits;
  const std::string report = loss_text(survivors, made);
  std::cout << report;
  if (auto sure = confirm(wanted, source.cluster_id); !sure) return sure;
  wait_for_promises(made);
  if (auto done = node::retire(dir, {source.cluster_id, made.number, report}); !done) return done;
  std::cout << fmt::format("{} is retired: no node starts on it, and {}/RETIRED has this report\n",
                           dir, dir);
  if (!is_source) return {};
  const auto written = write_recovered_state(*log.value(), dir, made, wanted.to);
  if (!written) return written.error();
  std::cout << fmt::format(
      "wrote {}: {}\n\nMake the members of the recovered group from this file, each with a new "
      "directory, then start them:\n  leasehold restore --from {} --id N --data-dir NEW "
      "--peers 1=host:port,...\n  leasehold serve --id N --data-dir NEW --peers 1=host:port,...\n"
      "Write down for users: what was acknowledged behind entry {} is lost.\n",
      wanted.to, written.value(), wanted.to, source.last.index.value());
  return {};
}

int apply(const WantedRecovery& wanted) {
  if (wanted.words.size() != 2 || wanted.dirs.size() != 1) {
    return misused("recover", "apply needs the file of a plan, and one --data-dir");
  }
  const auto survivors = read_reports(wanted.words[1]);
  if (!survivors) return fail("recover", survivors.error().message, kNo);
  const auto made = node::plan_recovery(survivors.value());
  if (!made) return fail("recover", made.error().message, kNo);
  const auto done = carry_out(wanted, survivors.value(), made.value());
  return done ? 0 : fail("recover", done.error().message, kNo);
}

int run(const WantedRecovery& wanted) {
  ::umask(storage::kPrivateUmask);
  if (wanted.words.empty()) return misused("recover", "expected look, plan or apply");
  const std::string& what = wanted.words.front();
  if (what != "apply" && !wanted.yes_lose_data.empty()) {
    return misused("recover", "--yes-lose-data is for apply");
  }
  if (what == "look" && !wanted.to.empty()) {
    return misused("recover", "look prints its report: --to is for plan and apply");
  }
  if (what == "look") return look(wanted);
  if (what == "plan") return plan(wanted);
  if (what == "apply") return apply(wanted);
  return misused("recover", fmt::format("'{}' is none of look, plan and apply", what));
}

}  // namespace

Run add_recover(Flags& flags) {
  const auto wanted = std::make_shared<WantedRecovery>();
  flags.add_words(wanted->words, "look|plan|apply [FILES] [OPTIONS]");
  Flag dir{"--data-dir", "DIR", "The folder of a stopped member's data; of plan more than once"};
  dir.repeated = true;
  flags.add(dir, [wanted](const std::string& text) -> Result<void> {
    wanted->dirs.push_back(text);
    return {};
  });
  flags.add({"--to", "FILE", "Of plan: where the plan goes; of apply: where the state goes"},
            wanted->to);
  flags.add(
      {"--yes-lose-data", "CLUSTER", "Of apply: the id of the cluster, instead of a question"},
      wanted->yes_lose_data);
  flags.set_footer(kRecoverText);
  return [wanted] { return run(*wanted); };
}

}  // namespace leasehold::cli
