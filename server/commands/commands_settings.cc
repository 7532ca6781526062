// LEASEHOLD SETTINGS: shows the settings of the group and changes them. The leader executes it.
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/commands/report.h>
#include <leasehold/server/front/replies.h>
#include <leasehold/server/front/settings_words.h>
#include <leasehold/server/front/words.h>

#include <string>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

constexpr const char* kSettingsForms =
    "ERR expected LEASEHOLD SETTINGS, or LEASEHOLD SETTINGS SET name value ..., as in SET lease 2s "
    "heartbeat 200ms";

std::string reply_to(const replica::SettingsResult& result) {
  std::string reply;
  switch (result.status) {
    case replica::GroupCallStatus::done: append_simple(reply, "OK"); return reply;
    case replica::GroupCallStatus::refused: {
      const raft::SettingsRefused refused = result.refused.value_or(raft::SettingsRefused{});
      const bool elsewhere = refused.obstacle == raft::SettingsObstacle::not_leader;
      const bool retry = raft::passes_by_itself(refused.obstacle);
      const char* const word = elsewhere ? "NOLEADER " : retry ? "TRYAGAIN " : "ERR ";
      append_error(reply, word + text_of(refused));
      return reply;
    }
    case replica::GroupCallStatus::failed:
    case replica::GroupCallStatus::unknown: break;
  }
  append_error(reply,
               "UNKNOWNOUTCOME begun, and not seen to be committed: the leadership was lost or the "
               "time was over; LEASEHOLD SETTINGS shows what is in effect");
  return reply;
}

}  // namespace

void run_leasehold_settings(Session& session, const Arguments& args, std::string& out) {
  if (args.size() == 2) {
    return session.with_status([](const node::NodeStatus& status, std::string& reply) {
      append_bulk(reply, settings_json(status));
    });
  }
  const bool pairs = args.size() % 2 == 1 && args.size() > 3;
  if (!pairs || !equals_ignoring_case(args[2], "set")) return session.refuse(out, kSettingsForms);
  std::vector<SettingWord> words;
  for (std::size_t i = 3; i + 1 < args.size(); i += 2) {
    words.push_back({std::string(args[i]), std::string(args[i + 1])});
  }
  const auto edit = parse_settings(words);
  if (!edit) return session.refuse(out, "ERR " + edit.error().message);
  // It knows no users, so it cannot know who may do this.
  const ServerState& state = session.context().state;
  if (state.options.witness) return session.refuse(out, witness_refusal(state));
  session.group().group.change_settings(
      edit.value(), state.options.command_timeout,
      [answer = session.answer_later()](const replica::SettingsResult& result) {
        answer(reply_to(result));
      });
}

}  // namespace leasehold::server
