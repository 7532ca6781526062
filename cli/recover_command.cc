#include <leasehold/cli/commands.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/recover_hosts.h>
#include <leasehold/cli/recovered_state.h>
#include <leasehold/cli/recovery_file.h>
#include <leasehold/cli/recovery_text.h>
#include <leasehold/kv/key_slot.h>
#include <leasehold/node/node_recovery.h>
#include <leasehold/node/node_retired.h>
#include <leasehold/storage/private_folder.h>

#include <fmt/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>
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

Of nodes with many groups, plan needs their number (--groups 16) and says of each group what may be
lost; --to of apply is a folder then, with a file for each group that goes on from this node. Bring
the files of all nodes together in one folder for leasehold restore.

Only for a group whose majority is lost for good. While the lost members may come back, wait for
them: nothing is lost then. All members that are left have to be stopped. Run it as the user that
the nodes run as.)";

struct WantedRecovery {
  std::vector<std::string> words;  ///< look, plan or apply, and files
  std::vector<std::string> dirs;
  std::string to;
  std::string yes_lose_data;
  std::string groups;             ///< how many there were; empty: one
  std::vector<std::string> only;  ///< groups, of many
};

/// More than the reports of all members.
constexpr std::size_t kRecoveryFileBytesMax = std::size_t{256} << 20U;

/// Reports of nodes with one group, or of nodes with many.
struct GivenReports {
  std::vector<node::Survivor> survivors;
  HostReports hosts;

  bool many() const { return !hosts.hosts.empty(); }
};

Result<void> take_reports(const std::string& path, GivenReports& given) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  while (file && text.size() <= kRecoveryFileBytesMax) {
    std::string some(std::size_t{1} << 20U, '\0');
    file.read(some.data(), static_cast<std::streamsize>(some.size()));
    text.append(some, 0, static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  }
  if (text.empty()) return Error{ErrorCode::io, "cannot read " + path};
  if (is_of_hosts(text)) {
    auto reports = decode_host_reports(text);
    if (!reports) return Error{reports.error().code, path + ": " + reports.error().message};
    for (node::HostSurvivor& one : reports.value().hosts) {
      given.hosts.hosts.push_back(std::move(one));
    }
    given.hosts.all = reports.value().all;
    given.hosts.only = std::move(reports.value().only);
  } else {
    auto reports = decode_reports(text);
    if (!reports) return Error{reports.error().code, path + ": " + reports.error().message};
    for (node::Survivor& one : reports.value()) given.survivors.push_back(std::move(one));
  }
  return {};
}

/// Of a member's directory.
Result<void> take_directory(const std::string& dir, GivenReports& given) {
  const auto many = node::has_many_groups(dir);
  if (!many) return many.error();
  if (many.value()) {
    auto host = look_at_host(dir);
    if (!host) return host.error();
    given.hosts.hosts.push_back(std::move(host).value());
  } else {
    auto survivor = look_at_survivor(dir);
    if (!survivor) return survivor.error();
    given.survivors.push_back(std::move(survivor).value());
  }
  return {};
}

Result<void> check_one_kind(const GivenReports& given) {
  if (!given.many() || given.survivors.empty()) return {};
  return Error{
      ErrorCode::invalid_argument,
      fmt::format("node {} has many groups, and node {} has one: give the directories of "
                  "one cluster",
                  given.hosts.hosts.front().id.value(), given.survivors.front().id.value())};
}

/// A number of groups, or of one.
Result<std::size_t> group_number(const std::string& text) {
  std::size_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec == std::errc() && read.ptr == text.data() + text.size() && number > 0 &&
      number <= kv::kSlots) {
    return number;
  }
  return Error{ErrorCode::invalid_argument,
               fmt::format("'{}' is no number from 1 to {}", text, kv::kSlots)};
}

/// What a plan is asked for. Errors: invalid_argument.
Result<void> take_wishes(const WantedRecovery& wanted, GivenReports& given) {
  if (!given.many()) {
    if (wanted.groups.empty() && wanted.only.empty()) return {};
    return Error{ErrorCode::invalid_argument,
                 "these nodes have one group: leave out --groups and --group"};
  }
  if (!wanted.groups.empty()) {
    const auto all = group_number(wanted.groups);
    if (!all) return Error{all.error().code, "--groups: " + all.error().message};
    given.hosts.all = all.value();
  }
  std::set<raft::GroupId> only;
  for (const std::string& text : wanted.only) {
    const auto group = group_number(text);
    if (!group) return Error{group.error().code, "--group: " + group.error().message};
    only.insert(raft::GroupId(group.value()));
  }
  given.hosts.only.assign(only.begin(), only.end());
  return {};
}

Result<void> write_plan(const std::string& path, const std::string& text) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    return Error{ErrorCode::in_use, path + " exists: nothing is overwritten"};
  }
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return {};
  return Error{ErrorCode::io, "cannot write " + path};
}

int look(const WantedRecovery& wanted) {
  if (wanted.dirs.size() != 1 || wanted.words.size() != 1) {
    return misused("recover", "look needs one --data-dir, and no files");
  }
  GivenReports given;
  if (auto taken = take_directory(wanted.dirs.front(), given); !taken) {
    return fail("recover", taken.error().message, kNo);
  }
  std::cout << (given.many() ? encode_report(given.hosts.hosts.front())
                             : encode_report(given.survivors.front()));
  return 0;
}

/// What a plan says, its file, and what to do with that.
struct PlanTexts {
  std::string report;
  std::string file;
  std::string next;
};

Result<PlanTexts> plan_texts(const WantedRecovery& wanted, const GivenReports& given) {
  const std::string apply = fmt::format(
      "\nThe plan is in {}. Give it to each survivor: leasehold recover apply {} --data-dir DIR,\n",
      wanted.to, wanted.to);
  if (given.many()) {
    const auto made = plan_of_hosts(given.hosts);
    if (!made) return made.error();
    std::set<std::uint64_t> sources;
    for (const node::GroupRecovery& one : made.value().groups) {
      if (one.goes_on()) sources.insert(given.hosts.hosts[one.source()].id.value());
    }
    std::string nodes;
    for (const std::uint64_t id : sources)
      nodes += (nodes.empty() ? "" : ", ") + std::to_string(id);
    return PlanTexts{host_loss_text(given.hosts.hosts, made.value()), encode_plan(given.hosts),
                     fmt::format("{}and at nodes {} with --to FOLDER, too.\n", apply, nodes)};
  }
  const auto made = node::plan_recovery(given.survivors);
  if (!made) return made.error();
  return PlanTexts{loss_text(given.survivors, made.value()), encode_plan(given.survivors),
                   fmt::format("{}and at node {} with --to FILE, too.\n", apply,
                               given.survivors[made.value().source].id.value())};
}

Result<GivenReports> gather_reports(const WantedRecovery& wanted) {
  GivenReports given;
  for (std::size_t i = 1; i < wanted.words.size(); ++i) {
    if (auto taken = take_reports(wanted.words[i], given); !taken) return taken.error();
  }
  for (const std::string& dir : wanted.dirs) {
    if (auto taken = take_directory(dir, given); !taken) return taken.error();
  }
  if (auto fits = check_one_kind(given); !fits) return fits.error();
  if (auto taken = take_wishes(wanted, given); !taken) return taken.error();
  return given;
}

int plan(const WantedRecovery& wanted) {
  const auto given = gather_reports(wanted);
  if (!given) return fail("recover", given.error().message, kNo);
  const auto texts = plan_texts(wanted, given.value());
  if (!texts) return fail("recover", texts.error().message, kNo);
  std::cout << texts.value().report;
  if (wanted.to.empty()) return 0;
  if (auto written = write_plan(wanted.to, texts.value().file); !written) {
    return fail("recover", written.error().message, kNo);
  }
  std::cout << texts.value().next;
  return 0;
}

/// The member of the plan whose directory it is; it is as it was when the plan was made.
Result<std::size_t> find_in_plan(const std::vector<node::Survivor>& survivors,
                                 const node::Survivor& here, const std::string& dir) {
  for (std::size_t i = 0; i < survivors.size(); ++i) {
    const node::Survivor& one = survivors[i];
    if (one.cluster_id != here.cluster_id || one.id != here.id || one.uuid != here.uuid) continue;
    if (one.last == here.last && one.base == here.base) return i;
    return changed_since_the_plan(dir);
  }
  return not_in_the_plan(dir, here.id, here.cluster_id);
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
  const auto written =
      write_recovered_state(*log.value(), source_of(dir, log.value()->survivor(), made), wanted.to);
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
  GivenReports given;
  if (auto taken = take_reports(wanted.words[1], given); !taken) {
    return fail("recover", taken.error().message, kNo);
  }
  if (given.many()) {
    const std::string& dir = wanted.dirs.front();
    const HostApplication host{
        dir, wanted.to, [&wanted](std::uint64_t cluster) { return confirm(wanted, cluster); },
        [&dir](std::uint64_t number) { return check_retirement(dir, number); }};
    const auto done = apply_to_host(host, given.hosts);
    return done ? 0 : fail("recover", done.error().message, kNo);
  }
  const auto made = node::plan_recovery(given.survivors);
  if (!made) return fail("recover", made.error().message, kNo);
  const auto done = carry_out(wanted, given.survivors, made.value());
  return done ? 0 : fail("recover", done.error().message, kNo);
}

int run(const WantedRecovery& wanted) {
  ::umask(storage::kPrivateUmask);
  if (wanted.words.empty()) return misused("recover", "expected look, plan or apply");
  const std::string& what = wanted.words.front();
  if (what != "apply" && !wanted.yes_lose_data.empty()) {
    return misused("recover", "--yes-lose-data is for apply");
  }
  if (what != "plan" && (!wanted.groups.empty() || !wanted.only.empty())) {
    return misused("recover", "--groups and --group are for plan");
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
  flags.add(
      {"--to", "FILE",
       "Of plan: where the plan goes; of apply: where the state goes, of many groups a folder"},
      wanted->to);
  flags.add({"--groups", "N", "Of plan: how many groups the nodes were started with"},
            wanted->groups);
  Flag only{"--group", "N", "Of plan: go on with this group only; more than once"};
  only.repeated = true;
  flags.add(only, [wanted](const std::string& text) -> Result<void> {
    wanted->only.push_back(text);
    return {};
  });
  flags.add(
      {"--yes-lose-data", "CLUSTER", "Of apply: the id of the cluster, instead of a question"},
      wanted->yes_lose_data);
  flags.set_footer(kRecoverText);
  return [wanted] { return run(*wanted); };
}

}  // namespace leasehold::cli
