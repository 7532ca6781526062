// Transactions: what is queued becomes one command of the log.
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

namespace leasehold::server {
namespace {

/// EXEC will refuse, too: a client that pipelines has sent it already.
void refuse_watch(Session& session, const std::string& text, std::string& out) {
  session.multi().fail_watch();
  session.refuse(out, text);
}

}  // namespace

std::string problem_of_exec(const Session& session, const Multi::Finished& finished) {
  if (finished.spoiled) {
    return "EXECABORT Transaction discarded because of previous errors.";
  }
  if (finished.watch_failed) {
    return "EXECABORT Transaction discarded because a WATCH was refused.";
  }
  if (session.user().queued_under != session.user().rights) {
    return "EXECABORT Transaction discarded because the user's rights were changed: send it again.";
  }
  return {};
}

void run_multi(Session& session, const Arguments&, std::string& out) {
  if (session.multi().open()) return session.refuse(out, "ERR MULTI calls can not be nested");
  session.begin_queue();
  session.multi().begin();
  append_simple(out, "OK");
}

void run_discard(Session& session, const Arguments&, std::string& out) {
  if (!session.multi().open()) return session.refuse(out, "ERR DISCARD without MULTI");
  session.multi().clear();
  append_simple(out, "OK");
}

void run_exec(Session& session, const Arguments&, std::string& out) {
  if (!session.multi().open()) return session.refuse(out, "ERR EXEC without MULTI");
  Multi::Finished finished = session.multi().finish();
  if (const std::string problem = problem_of_exec(session, finished); !problem.empty()) {
    return session.refuse(out, problem);
  }
  if (finished.empty) {
    append_array(out, finished.specs.size());
    for (const auto& one : session.run_queued(finished).here) out += one.second;
    return;
  }
  if (session.refuse_when_draining(out)) return;
  session.propose(std::move(finished.command), ReplyForm::transaction,
                  session.run_queued(finished));
}

void run_unwatch(Session& session, const Arguments&, std::string& out) {
  if (session.multi().open()) {
    return session.refuse(out, "ERR UNWATCH inside MULTI is not allowed: use DISCARD");
  }
  session.multi().clear();
  append_simple(out, "OK");
}

void run_watch(Session& session, const Arguments& args, std::string& out) {
  session.begin_queue();
  // Each once: a value is read whole, on the thread of many connections.
  std::vector<std::string_view> keys(args.begin() + 1, args.end());
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  const auto found = session.group().store.get_all(keys, kv::Load::revisions);
  if (!found && found.error().code == ErrorCode::invalid_argument) {
    return refuse_watch(session, "ERR " + found.error().message, out);
  }
  if (!found) {
    session.multi().fail_watch();
    return append_error(out, "ERR the store failed: " + found.error().message);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto& value = found.value()[i];
    if (value) session.charge_loaded(value->left_out);
    const auto watched = session.multi().watch({keys[i], value ? value->mod_revision : 0});
    if (!watched) return refuse_watch(session, "ERR " + watched.error().message, out);
  }
  append_simple(out, "OK");
}

void run_leasehold_expect(Session& session, const Arguments& args, std::string& out) {
  if (session.multi().open()) {
    session.multi().spoil();
    return session.refuse(out, "ERR LEASEHOLD EXPECT inside MULTI is not allowed: send it before");
  }
  if (args.size() < 4 || args.size() % 2 != 0) {
    return refuse_watch(session, "ERR expected LEASEHOLD EXPECT key revision [key revision ...]",
                        out);
  }
  session.begin_queue();
  for (std::size_t i = 2; i < args.size(); i += 2) {
    const auto revision = parse_integer(args[i + 1]);
    if (!revision || *revision < 0) {
      return refuse_watch(
          session,
          fmt::format(
              "ERR {} is not a revision: that of the key's last write, or 0 if there is to be "
              "no such key",
              quoted(args[i + 1])),
          out);
    }
    const auto watched = session.multi().watch({args[i], static_cast<std::uint64_t>(*revision)});
    if (!watched) return refuse_watch(session, "ERR " + watched.error().message, out);
  }
  append_simple(out, "OK");
}

}  // namespace leasehold::server
