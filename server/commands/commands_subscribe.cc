// SUBSCRIBE and its family: Redis's notifications of changed keys (docs/watch.md).
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/front/listening.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using Kind = Subscriptions::Kind;

bool is_pattern(std::string_view verb) {
  return lower(verb.front()) == 'p';
}

}  // namespace

void run_subscribe(Session& session, const Arguments& args, std::string& out) {
  // It hears all groups.
  if (session.refuse_when_draining(out, true)) return;
  if (session.watching()) {
    return session.refuse(out,
                          "ERR this connection watches keys: LEASEHOLD UNWATCH or RESET ends it");
  }
  const Kind kind = is_pattern(args[0]) ? Kind::pattern : Kind::channel;
  for (std::size_t i = 1; i < args.size(); ++i) {
    const std::string problem = Subscriptions::problem_of(kind, args[i]);
    if (!problem.empty()) return session.refuse(out, problem);
  }
  const std::string verb = lowered(args[0]);
  Subscriptions& subscriptions = session.change_subscriptions();
  bool all = true;
  for (std::size_t i = 1; all && i < args.size(); ++i) {
    all = subscriptions.add(kind, args[i]);
    const std::string text(args[i]);
    if (all) append_subscribed(out, verb, &text, subscriptions.count(), session.protocol);
  }
  session.subscriptions_changed();
  if (!all) {
    session.refuse(
        out, fmt::format("ERR a connection subscribes to at most {} channels and patterns, with {} "
                         "bytes together",
                         kInterestsMax, kInterestBytesMax));
  }
}

void run_unsubscribe(Session& session, const Arguments& args, std::string& out) {
  const std::string verb = lowered(args[0]);
  const Kind kind = verb.front() == 'p' ? Kind::pattern : Kind::channel;
  std::vector<std::string> texts(args.begin() + 1, args.end());
  const Subscriptions* const before = session.subscriptions();
  if (texts.empty() && before != nullptr) {
    texts.assign(before->of(kind).begin(), before->of(kind).end());
  }
  const std::size_t count = before == nullptr ? 0 : before->count();
  if (texts.empty()) return append_subscribed(out, verb, nullptr, count, session.protocol);
  if (before == nullptr) {
    for (const std::string& text : texts) {
      append_subscribed(out, verb, &text, 0, session.protocol);
    }
    return;
  }
  Subscriptions& subscriptions = session.change_subscriptions();
  for (const std::string& text : texts) {
    subscriptions.remove(kind, text);
    append_subscribed(out, verb, &text, subscriptions.count(), session.protocol);
  }
  session.subscriptions_changed();
}

}  // namespace leasehold::server
