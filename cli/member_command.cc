#include <leasehold/cli/access.h>
#include <leasehold/cli/commands.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/leader.h>
#include <leasehold/cli/member_numbers.h>
#include <leasehold/cli/member_options.h>
#include <leasehold/cli/member_view.h>
#include <leasehold/cli/remote_backup.h>
#include <leasehold/cli/status_command.h>
#include <leasehold/raft/membership.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

constexpr const char* kMemberText = R"(
Actions:
  list                      show the members, and how far each is behind
  add ID=HOST:PORT ...      add nodes that wait (serve --join), by their peer addresses:
                            each catches up as a learner, and then becomes a voter
  promote ID ...            make learners that have caught up voters
  demote ID ...             make voters learners
  remove ID ...             remove members; their processes end with status 5
  replace OLD NEW=HOST:PORT ...
                            let NEW catch up, then exchange the two in one change
  move ID=HOST:PORT ...     set the new address of a member's peer port
Every step may be repeated: a step that is done already changes nothing.
With --expect ID, where ID is the membership that list shows, nothing is changed if
the members or the settings have changed since.
Of nodes with many groups a change is made in one group after the other, and list shows
the first one; --group N names one.

Example:
  leasehold member replace 3 4=10.0.0.4:7101 --servers 10.0.0.1:7201,10.0.0.2:7201)";

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using Timeout = client::RespClient::Timeout;
using Words = std::vector<std::string>;

constexpr auto kMemberPause = std::chrono::milliseconds(100);
/// One question to one server.
constexpr Timeout kAskTimeout{2000};
/// So long a leader that is not among the servers is waited for.
constexpr auto kElsewherePatience = std::chrono::seconds(3);
/// Pause between two reports of how far a learner is.
constexpr auto kTellPause = std::chrono::seconds(1);
/// Nobody asks for the promotion of a learner that lacks more.
constexpr std::uint64_t kNearlyThere = 1000;

using Options = MemberOptions;

using View = MemberView;

class MemberCommand {
 public:
  explicit MemberCommand(Options options) : options_(std::move(options)) {}

  /// There is nothing to do in this group.
  bool done() {
    find_numbers();
    const std::optional<View> view = look();
    if (!view || !view->settled()) return false;
    if (options_.action == "replace") {
      for (std::size_t i = 0; i + 1 < options_.words.size(); i += 2) {
        const std::string fresh = id_of(options_.words[i + 1]);
        if (view->is_member(options_.words[i]) || !view->is_voter(fresh)) return false;
      }
      return true;
    }
    if (options_.action != "add" || options_.learner) return goal_of_action()(*view);
    return std::all_of(options_.words.begin(), options_.words.end(),
                       [&](const std::string& word) { return view->is_voter(id_of(word)); });
  }

  int run() {
    if (options_.action == "list") return list();
    find_numbers();
    if (!left_.empty()) return fail(kNotExecuted, left_);
    if (options_.action == "add") return add();
    if (options_.action == "replace") return replace();
    return change(options_.action, options_.words, goal_of_action());
  }

 private:
  using Goal = std::function<bool(const View&)>;

  int fail(int status, const std::string& text) {
    std::cerr << "leasehold member: " << text << "\n";
    return status;
  }

  /// None: why_ says why there is no leader to ask.
  std::optional<View> look() {
    std::optional<Leader> follower;
    auto leader =
        find_leader(options_.servers, std::min(options_.timeout, kAskTimeout), why_, &follower);
    if (follower && !follower->status.contains("membership")) follower.reset();
    if (!follower) {
      seen_.reset();
    } else if (!std::exchange(seen_, View{std::move(*follower)})) {
      elsewhere_since_ = Clock::now();
    }
    if (leader && !leader->status.contains("membership")) {
      leader.reset();
      why_ = "the leader is of a build that does not know this command";
    }
    if (!leader) return std::nullopt;
    return View{std::move(*leader)};
  }

  /// What a server of a leader elsewhere knows to be done is done.
  bool seen(const Goal& goal) const { return seen_ && seen_->settled() && goal(*seen_); }
  /// A leader that is not among the servers may pass the leadership on soon, or stay.
  bool is_elsewhere() const {
    return seen_ && Clock::now() - elsewhere_since_ > kElsewherePatience;
  }

  /// The words name nodes. In a group of many a node may have another number, which stays the same
  /// from here on. Without a leader they stay as they are.
  void find_numbers() {
    const std::optional<View> view = numbered_ ? std::nullopt : look();
    if (!view) return;
    numbered_ = true;
    if (!view->status.contains("groups")) return;
    const auto timeout = std::min(options_.timeout, kAskTimeout);
    left_ = put_in_group(options_.words, view->status, fetch_all(options_.servers, timeout).nodes);
    named_by_ = view->status;
  }
  std::uint64_t node(const std::string& id) const {
    return node_number(std::stoull(id), named_by_);
  }

  enum class Step : std::uint8_t { done, again, refused };

  /// Sends a change once. `last_` is what came of it, and may_be_made_ whether it may be made
  /// later.
  Step attempt(const std::string& action, const Words& words, const Goal& goal) {
    const std::optional<View> view = look();
    last_ = why_;
    if (!view) return may_be_made_ && seen(goal) ? Step::done : Step::again;
    // The first time it is sent in any state of the group: a wrong name has to be refused.
    if (may_be_made_ && view->settled() && goal(*view)) return Step::done;
    Words command = {"LEASEHOLD", "MEMBER"};
    if (!expect_.empty()) command.insert(command.end(), {"EXPECT", expect_});
    command.push_back(action);
    command.insert(command.end(), words.begin(), words.end());
    auto client = client::RespClient::connect(view->server, kAskTimeout, access());
    last_ = fmt::format("{}: {}", view->server, client ? "" : client.error().message);
    if (!client) return Step::again;
    const auto reply = client.value().call(command, options_.timeout + kAskTimeout);
    last_ = fmt::format("{}: {}", view->server, reply ? reply.value().text : reply.error().message);
    if (reply && reply.value().kind == client::RespValue::Kind::simple) return Step::done;
    const bool refused =
        reply && (reply.value().is_error("ERR") || reply.value().is_error("NOAUTH") ||
                  reply.value().is_error("NOPERM"));
    if (refused) return made_before(goal) ? Step::done : Step::refused;
    if (!reply || reply.value().is_error("UNKNOWNOUTCOME")) may_be_made_ = true;
    return Step::again;
  }

  /// An earlier attempt, whose answer was lost, has made it.
  bool made_before(const Goal& goal) {
    const std::optional<View> view = may_be_made_ ? look() : std::nullopt;
    return view && view->settled() && goal(*view);
  }

  int change(const std::string& action, const Words& words, const Goal& goal) {
    const auto deadline = Clock::now() + options_.timeout;
    expect_ = options_.expect;
    may_be_made_ = false;
    for (;; std::this_thread::sleep_for(kMemberPause)) {
      switch (attempt(action, words, goal)) {
        case Step::done: return 0;
        case Step::refused: return fail(kNotExecuted, last_);
        case Step::again: break;
      }
      if (Clock::now() > deadline || is_elsewhere()) return give_up();
    }
  }

  int give_up() {
    if (!may_be_made_) return fail(kNotExecuted, "not done: " + last_);
    return fail(kOutcomeUnknown, last_ + "; it may still be done: leasehold member list shows it");
  }

  Goal goal_of_action() const {
    return [action = options_.action, words = options_.words](const View& view) {
      return std::all_of(words.begin(), words.end(), [&](const std::string& word) {
        const std::string id = id_of(word);
        if (action == "remove") return !view.is_member(id);
        if (action == "promote") return view.is_voter(id);
        if (action == "demote") return view.is_member(id) && !view.is_voter(id);
        return added({word})(view);
      });
    };
  }

  static Goal all_members(const Words& words) {
    return [words](const View& view) {
      return std::all_of(words.begin(), words.end(),
                         [&](const std::string& word) { return view.is_member(id_of(word)); });
    };
  }

  /// By their numbers and addresses.
  static Goal added(const Words& members) {
    return [members](const View& view) {
      return std::all_of(members.begin(), members.end(), [&](const std::string& word) {
        const std::string id = id_of(word);
        return view.is_member(id) && view.member(id)->at("address") == word.substr(id.size() + 1);
      });
    };
  }

  int send_add(const Words& members) {
    // The one that leads elsewhere may be the one that was added before this command was repeated.
    if (!look() && seen(added(members))) return 0;
    Words words = members;
    if (options_.witness) words.insert(words.begin(), "WITNESS");
    return change("ADD", words, all_members(members));
  }

  int add() {
    if (const int status = send_add(options_.words)) return status;
    Words ids;
    for (const std::string& word : options_.words) ids.push_back(id_of(word));
    if (options_.learner) {
      for (const std::string& id : ids) std::cout << "node " << node(id) << " is a learner\n";
      return 0;
    }
    const Goal goal = [ids](const View& view) {
      return std::all_of(ids.begin(), ids.end(),
                         [&](const std::string& id) { return view.is_voter(id); });
    };
    if (const int status = bring_up(ids, "PROMOTE", ids, goal)) return status;
    const char* const kind = options_.witness ? " is a voter, as a witness\n" : " is a voter\n";
    for (const std::string& id : ids) std::cout << "node " << node(id) << kind;
    return 0;
  }

  int replace() {
    Words added;
    Words news;
    Words pairs;
    for (std::size_t i = 0; i + 1 < options_.words.size(); i += 2) {
      added.push_back(options_.words[i + 1]);
      news.push_back(id_of(options_.words[i + 1]));
      pairs.push_back(options_.words[i]);
      pairs.push_back(news.back());
    }
    const std::optional<View> view = look();
    for (std::size_t i = 0; view && i < pairs.size(); i += 2) {
      if (view->is_member(pairs[i])) continue;
      return fail(kNotExecuted,
                  fmt::format("node {} is not a member of this group: see member list", pairs[i]));
    }
    if (const int status = send_add(added)) return status;
    const Goal goal = [pairs](const View& after) {
      for (std::size_t i = 0; i < pairs.size(); i += 2) {
        if (after.is_member(pairs[i]) || !after.is_voter(pairs[i + 1])) return false;
      }
      return true;
    };
    if (const int status = bring_up(news, "REPLACE", pairs, goal)) return status;
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
      std::cout << "node " << node(pairs[i + 1]) << " is a voter in the place of node "
                << node(pairs[i]) << "\n";
    }
    return 0;
  }

  /// Waits until all of `ids` have nearly caught up, and then makes the change that needs it.
  int bring_up(const Words& ids, const std::string& action, const Words& words, const Goal& goal) {
    const auto deadline = Clock::now() + options_.catch_up;
    expect_.clear();  // this command's own step has changed the members
    auto tell_at = Clock::now() + kTellPause;
    std::string progress;
    may_be_made_ = false;
    for (;; std::this_thread::sleep_for(kMemberPause)) {
      if (const std::optional<View> view = look()) {
        const auto lags = [&](const std::string& id) { return view->behind(id) > kNearlyThere; };
        if (std::none_of(ids.begin(), ids.end(), lags)) {
          const Step step = attempt(action, words, goal);
          if (step == Step::done) return 0;
          if (step == Step::refused) return fail(kNotExecuted, last_);
        }
        progress = progress_of(*view, ids);
      } else if (seen(goal)) {
        return 0;
      } else {
        progress = why_;
      }
      if (Clock::now() > deadline || is_elsewhere()) {
        return fail(kNotExecuted, progress +
                                      "; they stay learners: leasehold member promote makes voters "
                                      "of them when they have caught up");
      }
      if (Clock::now() < tell_at) continue;
      tell_at = Clock::now() + kTellPause;
      std::cerr << progress << std::endl;
    }
  }

  int list() {
    const auto deadline = Clock::now() + options_.timeout;
    std::optional<View> view = look();
    while (!view && Clock::now() < deadline) {
      std::this_thread::sleep_for(kMemberPause);
      view = look();
    }
    if (!view) return fail(kNotExecuted, why_);
    const Json& status = view->status;
    if (options_.json) {
      Json out = {{"leader", status.at("leader")},
                  {"term", status.at("term")},
                  {"membership", status.at("membership")},
                  {"last", status.at("last")},
                  {"members", status.at("members")}};
      std::cout << out.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
      return 0;
    }
    std::printf("%-5s %-8s %-24s %-10s %s\n", "id", "role", "address", "connected", "behind");
    for (const Json& member : status.at("members")) {
      const std::string id = member.at("id").dump();
      const char* role = member.at("voter").get<bool>() ? "voter" : "learner";
      // A leader of an earlier build does not say it.
      const bool witness = member.value("witness", false);
      if (witness) role = member.at("voter").get<bool>() ? "witness" : "learner";
      if (member.at("id") == status.at("leader")) role = "leader";
      if (member.at("leaving").get<bool>()) role = "leaving";
      std::printf("%-5s %-8s %-24s %-10s %s\n", id.c_str(), role,
                  member.at("address").get<std::string>().c_str(),
                  member.at("connected").get<bool>() ? "yes" : "no",
                  grouped(view->behind(id)).c_str());
    }
    // A leader of an earlier build does not say it.
    const std::string id = status.at("membership").value("id", "");
    if (!id.empty()) std::printf("membership %s\n", id.c_str());
    if (!view->settled()) std::printf("a change of the members is under way\n");
    return 0;
  }

  Options options_;
  std::string left_;                ///< what is in the way of a node that is to be added
  bool numbered_ = false;           ///< the words are those of the group
  Json named_by_ = Json::object();  ///< the leader's status of then
  std::string why_;                 ///< look() has found no leader
  std::string expect_;              ///< sent with each attempt; empty: nothing is expected
  std::string last_;                ///< what the last attempt() came to
  /// An attempt was sent and not answered, or its outcome is not known.
  bool may_be_made_ = false;
  /// The server of the highest term that follows a leader which is not among the servers; none
  /// while there is no such leader. And since when there is one.
  std::optional<View> seen_;
  Clock::time_point elsewhere_since_;
};

/// All nodes of `servers` know the nodes that are to be added, or moved.
Result<void> introduce(const Options& options) {
  for (const std::string& word : options.words) {
    if (word.find('=') == std::string::npos) continue;
    for (const std::string& server : options.servers) {
      auto client = client::RespClient::connect(server, kAskTimeout, access());
      const auto reply = client
                             ? client.value().call({"LEASEHOLD", "HOST", "ADD", word}, kAskTimeout)
                             : Result<client::RespValue>(client.error());
      if (reply && reply.value().kind == client::RespValue::Kind::simple) continue;
      const std::string why = reply ? reply.value().text : reply.error().message;
      // The node that is to go may be down.
      std::cerr << fmt::format("leasehold member: {} does not know {} now: {}", server, word, why)
                << std::endl;
      if (reply && !reply.value().is_error("TRYAGAIN")) {
        return Error{ErrorCode::invalid_argument, why};
      }
    }
  }
  return {};
}

/// In one group after the other. Where it is done already nothing changes, so the command may be
/// given again.
int run_in_all(const Options& options, std::size_t groups) {
  if (const auto known = introduce(options); !known) {
    std::cerr << "leasehold member: " << known.error().message << "\n";
    return kNotExecuted;
  }
  std::size_t done = 0;
  // A node that leaves group 1, which has the users, ends: it leaves that last.
  const bool leaves = options.action == "remove" || options.action == "replace";
  for (std::size_t i = 1; i <= groups; ++i) {
    const std::size_t group = leaves ? groups + 1 - i : i;
    set_group(group);
    MemberCommand command(options);
    if (command.done()) {
      ++done;
      continue;
    }
    std::cout << "group " << group << " of " << groups << std::endl;
    if (const int status = command.run()) return status;
  }
  if (done > 0) {
    std::cout << done << " of " << groups << " groups were so already" << std::endl;
  }
  return 0;
}

int run_command(const Options& options) {
  if (access().group() != 0 || options.action == "list") return MemberCommand(options).run();
  BackupRequest asked;
  asked.servers = options.servers;
  asked.timeout = options.timeout;
  const auto groups = count_groups(asked);
  if (!groups) {
    std::cerr << "leasehold member: " << groups.error().message << "\n";
    return kNotExecuted;
  }
  if (groups.value() == 1) return MemberCommand(options).run();
  if (!options.expect.empty()) {
    return misused("member", "--expect is of one group: name it by --group");
  }
  return run_in_all(options, groups.value());
}

int run(const std::vector<std::string>& given, Options& options) {
  if (!given.empty()) {
    options.action = given.front();
    options.words.assign(given.begin() + 1, given.end());
  }
  std::string wrong;
  if (fits_action(options, wrong)) {
    if (!options.expect.empty() && options.action == "list") {
      wrong = "--expect goes with a change";
    } else if (!options.expect.empty() && !raft::membership_id_of(options.expect)) {
      wrong =
          "--expect takes the membership that leasehold member list shows: 16 hexadecimal digits";
    } else if (options.learner && options.action != "add") {
      wrong = "--learner goes with add";
    } else if (options.witness && options.action != "add" && options.action != "replace") {
      wrong = "--witness goes with add and replace";
    }
  }
  return wrong.empty() ? run_command(options) : misused("member", wrong);
}

}  // namespace

Run add_member(Flags& flags) {
  const auto words = std::make_shared<Words>();
  const auto options = std::make_shared<Options>();
  flags.add_words(*words, "ACTION ... --servers HOST:PORT,... [OPTIONS]");
  flags.add_servers(options->servers);
  flags.add({"--learner", "", "add: the new members stay learners"}, options->learner);
  flags.add(
      {"--witness", "",
       "add, replace: the new members vote and keep the log, but no state (serve --witness on)"},
      options->witness);
  flags.add({"--expect", "ID", "Change nothing unless this membership is in effect"},
            options->expect);
  flags.add({"--timeout", "DURATION", "How long to try each step", "10s"}, options->timeout);
  flags.add({"--catch-up", "DURATION", "How long new members may take to catch up", "10m"},
            options->catch_up);
  flags.add({"--json", "", "list: print a JSON object instead of a table"}, options->json);
  flags.set_footer(kMemberText);
  return [words, options] { return run(*words, *options); };
}

}  // namespace leasehold::cli
