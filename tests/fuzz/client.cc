// Bytes of a client. The first one chooses how they arrive: in which pieces, with a lease or
// without, and when the node answers. The parser has to judge the pieces as it judges the whole,
// and what the session sends has to be well-formed RESP.
#include <leasehold/base/assert.h>
#include <leasehold/server/commands/command_table.h>
#include <leasehold/server/front/session.h>
#include <leasehold/tests/fuzz/fuzz.h>
#include <leasehold/tests/fuzz/reply_length.h>
#include <leasehold/tests/server/fake_node.h>
#include <leasehold/tests/server/manual_executor.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

namespace leasehold::fuzz {
namespace {

using server::FakeNode;
using server::ManualExecutor;
using server::ParseStatus;
using server::RequestParser;
using server::ServerOptions;
using server::ServerState;
using server::Session;

/// Requests of a conversation that name no command. Most of what chance makes of a stream are such
/// ones, and their refusal costs more than an answer, because it looks for a reason.
constexpr int kUnknownMax = 2;

/// The beginning of `stream` up to the last request that a conversation takes.
std::string_view conversation_of(std::string_view stream) {
  RequestParser parser;
  std::size_t end = 0;
  for (int unknown = 0; unknown < kUnknownMax;) {
    if (parser.parse(stream.substr(end)) != ParseStatus::complete) return stream;
    end += parser.consumed();
    if (!parser.args().empty() && server::find_command(parser.args()) == nullptr) ++unknown;
  }
  return stream.substr(0, end);
}

/// The result of a parser for a stream: its requests, and how it ended. Its memory is kept from
/// input to input; each input has a new parser.
class Told {
 public:
  const std::string& of(std::string_view stream, std::size_t piece) {
    text_.clear();
    RequestParser parser;
    std::size_t begin = 0;
    std::size_t end = 0;
    while (true) {
      const ParseStatus status = parser.parse(stream.substr(begin, end - begin));
      if (status == ParseStatus::incomplete) {
        if (end == stream.size()) return text_;
        end = std::min(stream.size(), end + piece);
        continue;
      }
      if (status == ParseStatus::malformed)
        return text_.append("malformed: ").append(parser.error());
      LEASEHOLD_ASSERT(parser.consumed() > 0 && begin + parser.consumed() <= end);
      number(parser.args().size());
      for (const std::string_view word : parser.args()) {
        number(word.size());
        text_.append(word);
      }
      begin += parser.consumed();
    }
  }

 private:
  void number(std::size_t value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::string text_;
};

void converse(std::string_view stream, bool lease, std::size_t piece) {
  FakeNode node;
  ManualExecutor tasks;
  const server::ServedGroups groups({server::ServedGroup{node, node.store(), node.health()}});
  server::EventHubs hubs(groups);
  ServerOptions options;
  options.slowlog_threshold = lease::Duration(0);  // what is slow is the machine's affair
  ServerState state{options, server::command_table()};
  state.accounts.queue.run_at_once();  // what comes of a password comes at once
  state.slow_log.add({0, 0, 10'000, "get", "k", "fuzz:2", ""});
  if (lease) node.grant_lease(std::chrono::hours(1));
  auto session = std::make_shared<Session>(
      Session::Context{groups, state, &state.counters[0], &tasks, &tasks, &hubs}, 1, "fuzz:1",
      [] {});
  std::string input;
  std::string output;
  const auto pump = [&] {
    // Until nothing more happens: the node answers all requests, and sent output makes room for
    // more.
    for (bool more = true; more;) {
      tasks.run();
      input.erase(0, session->process(input));
      const bool sent = !session->output().empty();
      output += session->output();
      session->output().clear();
      while (hubs.of(0).look()) {
      }
      more = (session->busy() && node.complete_some()) || session->turn_over() || tasks.waits() ||
             (session->stalled() && sent);
    }
  };
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    input += stream.substr(at, piece);
    pump();
    LEASEHOLD_ASSERT(!session->busy());
  }
  for (std::string_view rest = output; !rest.empty();) {
    const std::size_t length = reply_length(rest);
    LEASEHOLD_ASSERT(length > 0);
    rest.remove_prefix(length);
  }
}

}  // namespace

void take(std::string_view input) {
  if (input.empty()) return;
  const auto choice = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  const std::size_t piece = 1 + choice % 32;
  static Told in_pieces;
  static Told whole;
  LEASEHOLD_ASSERT(in_pieces.of(input, piece) == whole.of(input, input.size() + 1));
  converse(conversation_of(input), (choice & 0x20U) != 0,
           (choice & 0x40U) != 0 ? piece : input.size() + 1);
}

}  // namespace leasehold::fuzz
