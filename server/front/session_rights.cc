// Who a connection is, and what it may do (docs/resp.md, Users).
#include <leasehold/server/front/key_use.h>
#include <leasehold/server/front/listening.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/permission.h>
#include <leasehold/server/front/session.h>
#include <leasehold/server/front/source.h>
#include <leasehold/server/front/words.h>
#include <leasehold/server/users/password.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

constexpr const char* kNoAuth = "NOAUTH Authentication required.";
constexpr const char* kTooManyChecks =
    "TRYAGAIN too many passwords are being checked at this node; the command was not executed";
constexpr const char* kChangedMeanwhile =
    "TRYAGAIN the user was changed while its password was checked; send the command again";

/// Those that run before a connection has said who it is.
bool needs_no_user(const CommandSpec& spec) {
  return spec.name == "auth" || spec.name == "hello" || spec.name == "quit" || spec.name == "reset";
}

/// The user that a command is to prove, if it names one.
std::optional<std::string_view> claimed_user(const CommandSpec& spec, const Arguments& args) {
  if (spec.name == "auth") return args.size() > 2 ? args[1] : std::string_view(kDefaultUser);
  if (spec.name != "hello") return std::nullopt;
  for (std::size_t i = 1; i + 2 < args.size(); ++i) {
    if (equals_ignoring_case(args[i], "auth")) return args[i + 1];
  }
  return std::nullopt;
}

/// It only says what the connection means: each command has rights of its own.
bool needs_no_right(const CommandSpec& spec) {
  return spec.name == "leasehold|group";
}

bool changes_group(const CommandSpec& spec, const Arguments& args) {
  const bool lists = args.size() > 2 && equals_ignoring_case(args[2], "list");
  return spec.name == "leasehold|transfer" || spec.name == "acl|setuser" ||
         spec.name == "acl|deluser" || (spec.name == "leasehold|member" && !lists) ||
         (spec.name == "leasehold|settings" && args.size() > 2) ||
         (spec.name == "leasehold|slots" && args.size() > 3);
}

bool is_about_this_node(const CommandSpec& spec) {
  return spec.group == CommandGroup::leasehold || spec.name == "role";
}

/// Monitoring needs it, above all while the group has no leader.
bool shows_how_it_is(const CommandSpec& spec) {
  return spec.group == CommandGroup::connection || spec.group == CommandGroup::cluster ||
         spec.name == "info" || spec.name == "role" || spec.name == "time" ||
         spec.name == "leasehold|status" || spec.name == "leasehold|help" ||
         spec.name.substr(0, 7) == "command";
}

bool may_use(const Rights& rights, const KeyUse& use, std::size_t& budget) {
  switch (use.kind) {
    case KeyUse::Kind::key: return rights.may_use(use.text, use.access, budget);
    case KeyUse::Kind::prefix: return rights.may_use_prefix(use.text, use.access, budget);
    case KeyUse::Kind::channel: return rights.may_listen(use.text, budget);
    case KeyUse::Kind::channel_pattern: return rights.may_listen_to_pattern(use.text, budget);
    case KeyUse::Kind::lease_name: return true;
  }
  return false;
}

/// While this node may have missed changes of the users.
bool waits_for_users(const Session& session, const CommandSpec& spec, const Arguments& args) {
  ServerState& state = session.context().state;
  const ServedGroups& groups = session.context().groups;
  // It is refused whatever the users are, and this node may never learn them.
  const bool refused = groups.home().health.refuses.load(std::memory_order_relaxed);
  if (const auto who = claimed_user(spec, args)) {
    const auto rights = state.accounts.find(session.users(), *who);
    return !rights || rights->version() == 0;
  }
  // A read is justified by the node, and then its rights are looked at once more. In another group
  // than that of the users this says nothing about them.
  const bool reads = spec.effect == CommandEffect::read || spec.name == "leasehold|read";
  if (reads && groups.many()) return !refused;
  if (needs_no_user(spec) || spec.effect == CommandEffect::read) return false;
  const Categories has = state.commands.categories_of(state.commands.number_of(spec));
  if (changes_group(spec, args)) return true;
  if ((has & category::write) != 0 || spec.effect == CommandEffect::write) return !refused;
  if ((has & category::pubsub) != 0) return true;
  // What repairs a node that has lost its group does not wait: the user is that of the disk.
  if ((has & category::admin) != 0 && !is_about_this_node(spec)) return true;
  // The owner of a certificate is not taken for the default user, which is open in a new group, as
  // long as this node may have missed all users of its group.
  const auto& rights = session.user().rights;
  return !session.certificate_user.empty() && rights && rights->version() == 0 &&
         !shows_how_it_is(spec);
}

void note_wrong_password(const Session& session, std::string_view who) {
  AclRefusal refusal;
  refusal.object = "auth";
  refusal.user = who.substr(0, kAclLogBytes);
  refusal.client = session.describe(0);
  session.context().state.accounts.log.add(std::move(refusal), wall_now());
}

}  // namespace

bool has_secret_words(const CommandSpec& spec) {
  return spec.name == "auth" || spec.name == "hello" || spec.name.substr(0, 4) == "acl|";
}

std::uint64_t Session::newest_users() const {
  return context_.state.newest_users(users());
}

bool Session::must_learn_users(const CommandSpec& spec, const Arguments& args) {
  ServerState& state = context_.state;
  if (state.users_known.load(std::memory_order_relaxed) || user_.unlearned || closing_ ||
      !waits_for_users(*this, spec, args)) {
    return false;
  }
  user_.checking = true;
  context_.groups.home().group.read(
      raft::ReadMode::quorum, state.options.command_timeout,
      [weak = weak_from_this(), &executor = *context_.executor](const replica::ReadResult& result) {
        executor.post([weak, known = result.index.has_value()] {
          const auto self = weak.lock();
          if (!self) return;
          if (known) self->context_.state.users_known.store(true, std::memory_order_relaxed);
          self->user_.checking = false;
          self->user_.unlearned = !known;
          self->on_progress_();
        });
      });
  return true;
}

void Session::look_up_user() {
  user_.seen = newest_users();
  // The user of a certificate may be made, or become known here, after the connection.
  if (!user_.proven && !certificate_user.empty() && authenticate_as(certificate_user)) return;
  auto rights = context_.state.accounts.find(users(), user_.name);
  if (!user_.proven) {
    // Nobody has proven anything: the default user, as long as it needs no password.
    if (!rights->on() || !rights->rules().nopass) rights = nullptr;
  } else if (!rights || !rights->on() || rights->created() != user_.created ||
             (user_.password && !rights->is_password(*user_.password))) {
    rights = nullptr;
    closing_ = true;
  }
  const bool changed = rights != user_.rights;
  user_.rights = std::move(rights);
  user_.unrestricted = user_.rights && user_.rights->unrestricted();
  if (changed && !may_still_listen()) closing_ = true;
}

bool Session::may_still_listen() const {
  if (!listening_ || user_.unrestricted) return true;
  if (!user_.rights) return false;
  const Rights& rights = *user_.rights;
  const kv::KeyFilter& filter = listening_->ears.front().reader.interest.filter;
  std::size_t budget = 0;
  const auto all = [&budget](const auto& texts, auto may) {
    budget = right_steps_max(texts.size());
    return std::all_of(texts.begin(), texts.end(), may);
  };
  if (watching()) {
    return all(filter.keys(),
               [&](const auto& key) { return rights.may_use(key, kReads, budget); }) &&
           all(filter.prefixes(),
               [&](const auto& prefix) { return rights.may_use_prefix(prefix, kReads, budget); });
  }
  using Kind = Subscriptions::Kind;
  const Subscriptions& has = listening_->subscriptions;
  return all(has.of(Kind::channel),
             [&](const auto& one) { return rights.may_listen(one, budget); }) &&
         all(has.of(Kind::pattern),
             [&](const auto& one) { return rights.may_listen_to_pattern(one, budget); });
}

bool Session::forbids(const CommandSpec& spec, const Arguments& args, std::string& out) {
  if (needs_no_user(spec)) return false;
  const std::string problem = refusal_of(spec, args, multi_.open() ? "multi" : "toplevel");
  if (problem.empty()) return false;
  multi_.note_refused(spec);
  refuse(out, problem);
  return true;
}

bool Session::forbids_since(std::uint64_t& seen, const CommandSpec& spec, const Arguments& args,
                            std::string& out) {
  if (user_.seen != newest_users()) look_up_user();
  if (seen == user_.seen) return false;
  seen = user_.seen;
  const std::string problem = refusal_of(spec, args, "toplevel");
  if (problem.empty()) return false;
  if (is_of_transaction(spec)) multi_.fail_watch();
  refuse(out, problem);
  return true;
}

std::string why_not(const Rights& rights, const CommandTable& commands, const CommandSpec& spec,
                    const Arguments& args, AclRefusal& refusal, std::size_t& steps) {
  steps = 0;
  if (!needs_no_right(spec) && !rights.may_run(commands.number_of(spec))) {
    refusal.reason = AclReason::command;
    refusal.object = spec.name;
    return fmt::format("User {} has no permissions to run the '{}' command", rights.user(),
                       spec.name);
  }
  const std::vector<KeyUse> uses = commands.uses_of(spec, args);
  const std::size_t steps_max = right_steps_max(uses.size());
  std::size_t budget = steps_max;
  for (const KeyUse& use : uses) {
    const bool permitted = may_use(rights, use, budget);
    steps = steps_max - budget;
    if (permitted) continue;
    const bool key = use.kind == KeyUse::Kind::key || use.kind == KeyUse::Kind::prefix;
    refusal.reason = key ? AclReason::key : AclReason::channel;
    refusal.object = use.text.substr(0, kAclLogBytes);
    if (budget == 0) {
      return fmt::format(
          "The patterns of user {} cost too much time for this command: shorten its keys, spread "
          "them over several commands, or give the user fewer and shorter patterns",
          rights.user());
    }
    return key ? "No permissions to access a key" : "No permissions to access a channel";
  }
  return {};
}

std::string Session::refusal_of(const CommandSpec& spec, const Arguments& args,
                                const char* context) {
  if (user_.unrestricted) return {};
  if (!user_.rights) return kNoAuth;
  AclRefusal refusal;
  std::size_t steps = 0;
  const std::string why =
      why_not(*user_.rights, context_.state.commands, spec, args, refusal, steps);
  work_ += steps / kPatternStepsPerWord;
  if (why.empty()) return {};
  refusal.context = context;
  refusal.user = user_.name;
  refusal.client = describe(0);
  context_.state.accounts.log.add(std::move(refusal), wall_now());
  return "NOPERM " + why;
}

void Session::begin_queue() {
  if (!multi_.watching()) user_.queued_under = user_.rights;
}

void Session::become(const std::shared_ptr<const Rights>& rights, StoredPassword password) {
  user_.name = rights->user();
  user_.proven = true;
  user_.password = std::move(password);
  user_.created = rights->created();
  look_up_user();
}

void Session::forget_user() {
  user_ = SessionUser();
  look_up_user();
}

bool Session::authenticate_as(const std::string& who) {
  const auto rights = context_.state.accounts.find(users(), who);
  if (!rights || !rights->on()) return false;
  become(rights, std::nullopt);
  return true;
}

void Session::authenticate(std::string_view who, std::string_view password, Authenticated done,
                           std::string& out) {
  Accounts& accounts = context_.state.accounts;
  const auto rights = accounts.find(users(), who);
  const bool on = rights && rights->on() && password.size() <= kPasswordBytesMax;
  std::string digest = sha256_hex(password.substr(0, kPasswordBytesMax));
  StoredPassword known;
  if (on) known = rights->rules().nopass ? StoredPassword("") : accounts.knows(*rights, digest);
  if (known) {
    wipe(digest);
    become(rights, std::move(known));
    return done(*this, out);
  }
  const std::uint64_t number = take_place(PlaceKind::other, 0);
  user_.checking = true;
  PasswordCheck check;
  check.source = source_of(address_);
  check.user = rights ? rights->user() : std::string();
  check.what = accounts.same_check(rights, who, digest);
  check.asker = weak_from_this();
  check.find = [&accounts, rights, digest]() mutable {
    StoredPassword right = accounts.check(rights, digest);
    wipe(digest);
    return right;
  };
  check.done = [weak = weak_from_this(), &executor = *context_.executor, rights, number, on,
                tried = std::string(who.substr(0, kAclLogBytes)),
                done = std::move(done)](StoredPassword right) mutable {
    if (!on) right.reset();
    executor.post([weak, rights, number, right = std::move(right), tried = std::move(tried),
                   done = std::move(done)] {
      if (const auto self = weak.lock()) self->finish_check(number, tried, right, rights, done);
    });
  };
  const bool posted = accounts.queue.check(std::move(check));
  wipe(digest);
  if (posted) return;
  user_.checking = false;
  std::string reply;
  append_error(reply, kTooManyChecks);
  fill(number, std::move(reply));
}

void Session::finish_check(std::uint64_t number, const std::string& who,
                           const StoredPassword& password,
                           const std::shared_ptr<const Rights>& rights, const Authenticated& done) {
  user_.checking = false;
  std::string reply;
  if (!password) {
    note_wrong_password(*this, who);
    count_refusal();
    append_error(reply, "WRONGPASS invalid username-password pair or user is disabled.");
  } else if (context_.state.accounts.find(users(), rights->user()) != rights) {
    append_error(reply, kChangedMeanwhile);
  } else {
    become(rights, password);
    done(*this, reply);
  }
  fill(number, std::move(reply));
  on_progress_();
}

}  // namespace leasehold::server
