#include <leasehold/kv/command_level.h>
#include <leasehold/server/commands/user_change.h>
#include <leasehold/server/front/replies.h>
#include <leasehold/server/front/words.h>
#include <leasehold/server/users/password.h>

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace leasehold::server {
namespace {

/// Changes of other clients that may come between.
constexpr int kChangeTriesMax = 16;

/// The slow part, of passwords, runs on their thread, and so the whole does.
class UserChange : public std::enable_shared_from_this<UserChange> {
 public:
  UserChange(const Session::Context& context, std::string user, std::vector<std::string> rules,
             std::function<void(std::string)> done)
      : group_(context.groups.home().group),
        users_(context.groups.home().store.users()),
        state_(context.state),
        user_(std::move(user)),
        words_(std::move(rules)),
        done_(std::move(done)) {}
  ~UserChange() {
    for (std::string& word : words_) wipe(word);
  }
  UserChange(const UserChange&) = delete;
  UserChange& operator=(const UserChange&) = delete;

  void start() {
    const bool posted = state_.accounts.queue.change([self = shared_from_this()] { self->run(); });
    if (!posted) {
      fail(
          "TRYAGAIN too many passwords are being checked at this node; the command was not "
          "executed");
    }
  }

 private:
  void run() {
    const auto records = users_.list();
    const auto at = records->find(user_);
    kv::SetUser command;
    UserRules rules = user_ == kDefaultUser ? open_rules() : UserRules();
    if (at != records->end()) {
      command.expected = at->second->version;
      // What begins with `reset` needs nothing of them.
      const bool afresh = !words_.empty() && equals_ignoring_case(words_.front(), "reset");
      if (!parse_rules(at->second->rules, rules) && !afresh) {
        return fail(
            fmt::format("ERR this build cannot read the rules of user '{}': change them at a node "
                        "of a newer build that wrote them, or begin with 'reset'",
                        user_));
      }
    }
    for (const std::string& word : words_) {
      const std::string problem =
          apply_rule(rules, word, state_.accounts.catalogue(), password_work());
      if (problem.empty()) continue;
      return fail(
          fmt::format("ERR Error in ACL SETUSER modifier '{}': {}", shown_rule(word), problem));
    }
    const std::string text = rules.text();
    if (UserRules same; !parse_rules(text, same)) {
      return fail("ERR these rules could not be read again; nothing was changed");
    }
    command.name = user_;
    command.rules = text;
    auto encoded = kv::encode_for(command, group_.lease_view().level());
    if (!encoded) return fail("ERR " + encoded.error().message);
    group_.propose(std::move(encoded).value(), node::CallOptions(state_.options.command_timeout),
                   [self = shared_from_this()](const replica::ProposeResult& result) {
                     self->finish(result);
                   });
  }

  void finish(const replica::ProposeResult& result) {
    std::string reply;
    switch (result.status) {
      case replica::ProposeStatus::committed: return finish(result.result);
      case replica::ProposeStatus::dropped: append_dropped(reply, result); break;
      case replica::ProposeStatus::unknown:
        append_error(reply, "UNKNOWNOUTCOME the command may still be executed");
        break;
    }
    done_(std::move(reply));
  }

  void finish(const Bytes& bytes) {
    const auto reply = kv::decode_reply(bytes);
    if (!reply) return fail("ERR " + reply.error().message);
    if (const auto* error = std::get_if<kv::ErrorReply>(&reply.value())) {
      const bool unknown = error->kind == kv::ErrorKind::store_failed;
      return fail((unknown ? "UNKNOWNOUTCOME " : "ERR ") + error->text);
    }
    if (std::holds_alternative<kv::Integer>(reply.value())) {
      std::string ok;
      append_simple(ok, "OK");
      return done_(std::move(ok));
    }
    if (++tries_ < kChangeTriesMax) return start();
    fail("TRYAGAIN others change this user all the time; the command was not executed");
  }

  void fail(const std::string& text) {
    std::string reply;
    append_error(reply, text);
    done_(std::move(reply));
  }

  node::Group& group_;
  const kv::Users& users_;
  ServerState& state_;
  const std::string user_;
  std::vector<std::string> words_;
  std::function<void(std::string)> done_;
  int tries_ = 0;
};

}  // namespace

void change_user(const Session::Context& context, std::string user, std::vector<std::string> rules,
                 std::function<void(std::string)> done) {
  std::make_shared<UserChange>(context, std::move(user), std::move(rules), std::move(done))
      ->start();
}

}  // namespace leasehold::server
