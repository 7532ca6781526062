// LEASEHOLD MEMBER: lists the members and changes them. The leader executes it.
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/commands/report.h>
#include <leasehold/server/front/replies.h>
#include <leasehold/server/front/words.h>

#include <utility>

namespace leasehold::server {
namespace {

using What = node::MemberEdit::What;

constexpr const char* kMemberForms =
    "ERR expected LEASEHOLD MEMBER LIST, ADD [WITNESS] id=host:port ..., PROMOTE id ..., DEMOTE id "
    "..., REMOVE id ..., MOVE id=host:port ..., or REPLACE old new ...; EXPECT with the id of a "
    "membership may stand before a change";

std::optional<raft::NodeId> parse_id(std::string_view word) {
  const auto number = parse_integer(word);
  if (!number || *number < 1) return std::nullopt;
  return raft::NodeId(static_cast<std::uint64_t>(*number));
}

/// "4=10.0.0.4:7101", or with `placed` off "4". False: neither.
bool add_edit(What what, bool placed, std::string_view word, node::MemberEdits& edits) {
  const std::size_t equals = word.find('=');
  if ((equals != std::string_view::npos) != placed) return false;
  const auto id = parse_id(word.substr(0, equals));
  if (!id) return false;
  node::MemberEdit edit{what, *id};
  if (placed) edit.address = std::string(word.substr(equals + 1));
  edits.push_back(std::move(edit));
  return true;
}

/// Of the words behind LEASEHOLD MEMBER and EXPECT. Empty: the words are wrong.
node::MemberEdits parse_edits(const Arguments& args) {
  struct Form {
    const char* name;
    What what;
    bool placed;
  };
  static constexpr Form kForm[] = {{"add", What::add, true},
                                   {"promote", What::promote, false},
                                   {"demote", What::demote, false},
                                   {"remove", What::remove, false},
                                   {"move", What::move, true}};
  node::MemberEdits edits;
  if (equals_ignoring_case(args[2], "replace")) {
    for (std::size_t i = 3; i + 1 < args.size(); i += 2) {
      const bool fits = add_edit(What::promote, false, args[i + 1], edits) &&
                        add_edit(What::remove, false, args[i], edits);
      if (!fits) return {};
    }
    return args.size() % 2 == 1 ? edits : node::MemberEdits{};
  }
  for (const Form& form : kForm) {
    if (!equals_ignoring_case(args[2], form.name)) continue;
    const bool witness =
        form.what == What::add && args.size() > 3 && equals_ignoring_case(args[3], "witness");
    for (std::size_t i = witness ? 4 : 3; i < args.size(); ++i) {
      if (!add_edit(form.what, form.placed, args[i], edits)) return {};
      edits.back().witness = witness;
    }
  }
  return edits;
}

std::string reply_to(const node::MembersResult& result) {
  std::string reply;
  switch (result.status) {
    case replica::GroupCallStatus::done: append_simple(reply, "OK"); return reply;
    case replica::GroupCallStatus::refused: {
      const bool elsewhere = result.refused.obstacle == raft::ChangeObstacle::not_leader;
      const char* const word = elsewhere ? "NOLEADER " : result.retryable ? "TRYAGAIN " : "ERR ";
      append_error(reply, word + result.reason);
      return reply;
    }
    case replica::GroupCallStatus::failed:
    case replica::GroupCallStatus::unknown: break;
  }
  append_error(reply, "UNKNOWNOUTCOME " + result.reason);
  return reply;
}

}  // namespace

void run_leasehold_member(Session& session, const Arguments& args, std::string& out) {
  if (args.size() == 3 && equals_ignoring_case(args[2], "list")) {
    return session.with_status([](const node::NodeStatus& status, std::string& reply) {
      append_bulk(reply, members_json(status));
    });
  }
  const ServerState& state = session.context().state;
  node::CallOptions options = state.options.command_timeout;
  Arguments words(args.begin(), args.end());
  if (args.size() > 4 && equals_ignoring_case(args[2], "expect")) {
    options.expected_membership = raft::membership_id_of(args[3]);
    if (!options.expected_membership) return session.refuse(out, kMemberForms);
    words.erase(words.begin() + 2, words.begin() + 4);
  }
  node::MemberEdits edits = parse_edits(words);
  if (edits.empty()) return session.refuse(out, kMemberForms);
  // It knows no users, so it cannot know who may do this.
  if (state.options.witness) return session.refuse(out, witness_refusal(state));
  session.group().group.change_members(
      std::move(edits), options,
      [answer = session.answer_later()](const node::MembersResult& result) {
        answer(reply_to(result));
      });
}

}  // namespace leasehold::server
