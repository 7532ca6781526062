#include <leasehold/base/assert.h>
#include <leasehold/server/session.h>
#include <leasehold/tests/server/fake_node.h>
#include <leasehold/tests/server/fuzz_client.h>
#include <leasehold/tests/server/manual_executor.h>

#include <charconv>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

/// What a parser says of a stream: its requests, and how it ended.
std::vector<std::string> parsed(std::string_view stream, std::size_t piece) {
  std::vector<std::string> out;
  RequestParser parser;
  std::size_t begin = 0;
  std::size_t end = 0;
  while (true) {
    const ParseStatus status = parser.parse(stream.substr(begin, end - begin));
    if (status == ParseStatus::incomplete) {
      if (end == stream.size()) return out;
      end = std::min(stream.size(), end + piece);
      continue;
    }
    if (status == ParseStatus::malformed) {
      out.push_back("malformed: " + parser.error());
      return out;
    }
    LEASEHOLD_ASSERT(parser.consumed() > 0 && begin + parser.consumed() <= end);
    std::string request;
    for (const std::string_view word : parser.args()) {
      request += std::to_string(word.size()) + ":" + std::string(word) + ",";
    }
    out.push_back(std::move(request));
    begin += parser.consumed();
  }
}

void converse(std::string_view stream, bool lease, std::size_t piece) {
  FakeNode node;
  ManualExecutor tasks;
  ServerState state{ServerOptions{}};
  if (lease) node.grant_lease(std::chrono::hours(1));
  auto session = std::make_shared<Session>(
      Session::Context{node, node.store(), state, &state.counters[0], &tasks, &tasks}, 1, "fuzz:1",
      [] {});
  std::string input;
  std::string output;
  const auto pump = [&] {
    // Until nothing more comes of it: the node answers whatever it was asked.
    for (bool more = true; more;) {
      tasks.run();
      input.erase(0, session->process(input));
      output += std::exchange(session->output(), {});
      more = node.complete_some() || session->turn_over() || tasks.waits();
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

std::size_t reply_length(std::string_view bytes) {
  std::size_t at = 0;
  for (std::size_t missing = 1; missing > 0; --missing) {
    const std::size_t end = bytes.find("\r\n", at);
    if (end == std::string_view::npos) return 0;
    const char kind = bytes[at];
    const std::string_view text = bytes.substr(at + 1, end - at - 1);
    at = end + 2;
    if (text.find_first_of("\r\n") != std::string_view::npos) return 0;
    if (kind == '+' || kind == '-') continue;
    if (kind == '_') {
      if (!text.empty()) return 0;
      continue;
    }
    std::int64_t number = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
    if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return 0;
    if (kind == ':') continue;
    if (number < -1 || number > std::int64_t{1} << 30) return 0;
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(number, 0));
    if (kind == '*') {
      missing += count;
    } else if (kind == '%') {
      missing += 2 * count;
    } else if (kind == '$') {
      if (number < 0) continue;
      if (bytes.size() < at + count + 2 || bytes.substr(at + count, 2) != "\r\n") return 0;
      at += count + 2;
    } else {
      return 0;
    }
  }
  return at;
}

void fuzz_client(std::string_view input) {
  if (input.empty()) return;
  const auto choice = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  const std::size_t piece = 1 + choice % 32;
  LEASEHOLD_ASSERT(parsed(input, piece) == parsed(input, input.size() + 1));
  converse(input, (choice & 0x20U) != 0, (choice & 0x40U) != 0 ? piece : input.size() + 1);
}

}  // namespace leasehold::server
